package webhook

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/nfs/volume"
	"github.com/fairlead-io/fairlead/internal/reads/nfsreads"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
	"github.com/fairlead-io/fairlead/internal/testkit/reviews"
	"github.com/fairlead-io/fairlead/webhook/admission"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

// newNFS serves both drivers; volumes of the GKE driver are of storage/files.
func newNFS(live client.Reader) *NFS {
	return &NFS{Live: &nfsreads.Reader{Objects: live, Drivers: nfsreads.Drivers{
		csi.DefaultDriver: {}, volume.GKEDriver: {Namespace: "storage", Name: "files"},
	}}}
}

func nfsService(mountOptions ...string) *v1alpha1.NFSService {
	return &v1alpha1.NFSService{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "files"}, Spec: v1alpha1.NFSServiceSpec{
		Backends: []v1alpha1.NFSBackend{{Address: "10.0.0.1"}}, MountOptions: mountOptions, Versions: []int32{3},
	}}
}

func nfsVolume(name, driver string, attributes map[string]string) *corev1.PersistentVolume {
	return objects.Volume(name, driver, "files", "files", func(pv *corev1.PersistentVolume) { pv.Spec.CSI.VolumeAttributes = attributes })
}

func nfsServiceReview(operation, spec, oldSpec string) string {
	object := func(spec string) string {
		return fmt.Sprintf(`{"metadata":{"namespace":"storage","name":"files"},"spec":%s}`, spec)
	}
	text := fmt.Sprintf(`"resource":{"group":"fairlead.io","version":"v1alpha1","resource":"nfsservices"},"namespace":"storage","name":"files","operation":%q`, operation)
	if spec != "" {
		text += `,"object":` + object(spec)
	}
	if oldSpec != "" {
		text += `,"oldObject":` + object(oldSpec)
	}
	return reviews.Of(reviews.NFSService, text)
}

func nfsVolumeReview(driver, attributes, spec string) string {
	return reviews.Of(reviews.Volume, fmt.Sprintf(`"resource":{"group":"","version":"v1","resource":"persistentvolumes"},"name":"pv-a","operation":"CREATE",`+
		`"object":{"metadata":{"name":"pv-a"},"spec":{"csi":{"driver":%q,"volumeHandle":"files","volumeAttributes":%s}%s}}`, driver, attributes, spec))
}

func TestNFSServices(t *testing.T) {
	const well = `{"backends":[{"address":"10.0.0.1"}]}`
	mounted := []client.Object{nfsService(), nfsVolume("pv-a", csi.DefaultDriver, map[string]string{"service": "storage/files"}), objects.Attachment("pv-a", "node-1", csi.DefaultDriver)}
	for name, test := range map[string]struct {
		review  string
		objects []client.Object
		denied  string
	}{
		"well formed":           {nfsServiceReview("CREATE", well, ""), nil, ""},
		"two problems":          {nfsServiceReview("CREATE", `{"backends":[{"address":"a"}],"shares":["exports"]}`, ""), nil, "spec.backends[0].address"},
		"second problem":        {nfsServiceReview("CREATE", `{"backends":[{"address":"a"}],"shares":["exports"]}`, ""), nil, "spec.shares[0]"},
		"port while mounted":    {nfsServiceReview("UPDATE", `{"port":2050,"backends":[{"address":"10.0.0.1"}]}`, well), mounted, "spec.port"},
		"port, not mounted":     {nfsServiceReview("UPDATE", `{"port":2050,"backends":[{"address":"10.0.0.1"}]}`, well), mounted[:2], ""},
		"deleted while mounted": {nfsServiceReview("DELETE", "", well), mounted, "node-1 (pv-a)"},
		"deleted, not mounted":  {nfsServiceReview("DELETE", "", well), mounted[:2], ""},
		"another is mounted":    {nfsServiceReview("DELETE", "", well), []client.Object{nfsVolume("pv-a", csi.DefaultDriver, map[string]string{"service": "storage/other"}), mounted[2]}, ""},
		"mounted by default":    {nfsServiceReview("DELETE", "", well), []client.Object{nfsVolume("pv-g", volume.GKEDriver, nil), objects.Attachment("pv-g", "node-2", volume.GKEDriver)}, "node-2 (pv-g)"},
		"of an unserved driver": {nfsServiceReview("DELETE", "", well), []client.Object{nfsVolume("pv-x", "nfs.csi.k8s.io", map[string]string{"service": "storage/files"}), objects.Attachment("pv-x", "node-1", "nfs.csi.k8s.io")}, ""},
	} {
		response := newRig(t, fakeClient(t, test.objects...)).ask(t, registration.NFSServicesPath, test.review)
		must.True(t, response.Allowed == (test.denied == ""), "%s: got %+v", name, response)
		must.Check(t, test.denied == "" || strings.Contains(response.Result.Message, test.denied), "%s: got %+v", name, response.Result)
	}
}

func TestNFSRulesAreOffWithoutDrivers(t *testing.T) {
	for _, nfs := range []*NFS{nil, {Live: &nfsreads.Reader{}}} {
		h := rig{NewRouter(nil, nil, nfs, admission.NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler)), &atomic.Int32{}}
		for path, review := range reviewsOfEveryPath() {
			if !slices.Contains(nfsPaths, path) {
				continue
			}
			response := h.ask(t, path, review)
			must.Check(t, response.Allowed && response.Patch == nil && response.Warnings == nil, "%s: got %+v", path, response)
		}
	}
}

// A deletion that cannot be judged is to be tried again; volumes are never held up.
func TestUnreadableFactsRefuseOnlyDeletions(t *testing.T) {
	h := newRig(t, unreadable(fakeClient(t)))
	response := h.ask(t, registration.NFSServicesPath, nfsServiceReview("DELETE", "", `{}`))
	must.Check(t, !response.Allowed && response.Result.Code == http.StatusServiceUnavailable, "got %+v", response)
	for _, path := range []string{registration.NFSVolumesPath, registration.NFSVolumeOptionsPath} {
		// An error, which failure policy Ignore lets pass.
		status, body := h.post(path, nfsVolumeReview(volume.GKEDriver, `{"share":"/a"}`, ""))
		must.Check(t, status == http.StatusInternalServerError, "%s: %d %s", path, status, body)
	}
}

func TestNFSVolumes(t *testing.T) {
	h := newRig(t, fakeClient(t, nfsService()))
	for name, test := range map[string]struct {
		review, denied, warned string
	}{
		"well formed":           {nfsVolumeReview(volume.GKEDriver, `{"share":"/a"}`, `,"mountOptions":["vers=4.1"]`), "", ""},
		"version 3 of Services": {nfsVolumeReview(volume.GKEDriver, `{"share":"/a"}`, `,"mountOptions":["nolock"]`), "spec.health.mountPort", ""},
		"no share":              {nfsVolumeReview(volume.GKEDriver, `{}`, ""), "spec.csi.volumeAttributes[share]", ""},
		"no service":            {nfsVolumeReview(csi.DefaultDriver, `{"share":"/a"}`, ""), "spec.csi.volumeAttributes[service]", ""},
		"service is not there":  {nfsVolumeReview(csi.DefaultDriver, `{"share":"/a","service":"storage/none"}`, ""), "", "there is no NFSService storage/none"},
		"read-ahead no number":  {nfsVolumeReview(volume.GKEDriver, `{"share":"/a"}`, `,"mountOptions":["read_ahead_kb=x"]`), "spec.mountOptions[0]", ""},
		"another driver":        {nfsVolumeReview("nfs.csi.k8s.io", `{}`, ""), "", ""},
	} {
		response := h.ask(t, registration.NFSVolumesPath, test.review)
		must.Check(t, response.Allowed == (test.denied == "") && (test.denied == "" || strings.Contains(response.Result.Message, test.denied)), "%s: got %+v", name, response)
		warnings := strings.Join(response.Warnings, "\n")
		must.Check(t, strings.Contains(warnings, test.warned) && (test.warned != "" || warnings == ""), "%s: got %s", name, warnings)
	}
}

func TestStatdOfTheConfigurationAllowsLocks(t *testing.T) {
	service := nfsService()
	service.Spec.Exposure = "PerNode"
	for statd, allowed := range map[bool]bool{true: true, false: false} {
		n := newNFS(fakeClient(t, service))
		n.Statd = statd
		h := rig{NewRouter(nil, nil, n, admission.NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler)), &atomic.Int32{}}
		response := h.ask(t, registration.NFSVolumesPath, nfsVolumeReview(volume.GKEDriver, `{"share":"/a"}`, `,"mountOptions":["vers=3"]`))
		must.Equal(t, response.Allowed, allowed, "statd %t: %+v", statd, response.Result)
	}
}

func TestVolumesGetMountOptionsOfTheirService(t *testing.T) {
	for name, test := range map[string]struct {
		review, patch string
	}{
		"none of its own": {nfsVolumeReview(volume.GKEDriver, `{"share":"/a"}`, ""), `[{"op":"add","path":"/spec/mountOptions","value":["hard","vers=3"]}]`},
		"its own":         {nfsVolumeReview(volume.GKEDriver, `{"share":"/a"}`, `,"mountOptions":["soft","v4.1"]`), ""},
		"another driver":  {nfsVolumeReview("nfs.csi.k8s.io", `{"share":"/a"}`, ""), ""},
		"no such service": {nfsVolumeReview(csi.DefaultDriver, `{"share":"/a","service":"storage/none"}`, ""), ""},
		"no service":      {nfsVolumeReview(csi.DefaultDriver, `{"share":"/a"}`, ""), ""},
	} {
		response := newRig(t, fakeClient(t, nfsService("hard"))).ask(t, registration.NFSVolumeOptionsPath, test.review)
		must.Check(t, response.Allowed && string(response.Patch) == test.patch, "%s: got %+v, patch %s", name, response, response.Patch)
	}
}

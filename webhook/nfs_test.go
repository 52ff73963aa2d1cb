package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/nfs"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/nfs/volume"
)

const (
	nfsServiceKind = `{"group":"fairlead.io","version":"v1alpha1","kind":"NFSService"}`
	volumeKind     = `{"group":"","version":"v1","kind":"PersistentVolume"}`
)

// newNFS serves both drivers; volumes of the GKE driver are of storage/files.
func newNFS(live client.Reader) *NFS {
	return &NFS{Live: nfs.NewNFSReader(live, map[string]types.NamespacedName{
		csi.DefaultDriver: {}, volume.GKEDriver: {Namespace: "storage", Name: "files"},
	})}
}

func nfsService(mountOptions ...string) *v1alpha1.NFSService {
	return &v1alpha1.NFSService{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "files"}, Spec: v1alpha1.NFSServiceSpec{
		Backends: []v1alpha1.NFSBackend{{Address: "10.0.0.1"}}, MountOptions: mountOptions, Versions: []int32{3},
	}}
}

func nfsVolume(name, driver string, attributes map[string]string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
		CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "files", VolumeAttributes: attributes},
	}}}
}

func nfsAttached(pv, node, driver string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: pv + "-" + node}, Spec: storagev1.VolumeAttachmentSpec{
		Attacher: driver, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv},
	}}
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
	return reviewOf(nfsServiceKind, text)
}

func nfsVolumeReview(driver, attributes, spec string) string {
	return reviewOf(volumeKind, fmt.Sprintf(`"resource":{"group":"","version":"v1","resource":"persistentvolumes"},"name":"pv-a","operation":"CREATE",`+
		`"object":{"metadata":{"name":"pv-a"},"spec":{"csi":{"driver":%q,"volumeHandle":"files","volumeAttributes":%s}%s}}`, driver, attributes, spec))
}

func TestNFSServicesAreJudged(t *testing.T) {
	const well = `{"backends":[{"address":"10.0.0.1"}]}`
	world := []client.Object{nfsService(), nfsVolume("pv-a", csi.DefaultDriver, map[string]string{"service": "storage/files"}), nfsAttached("pv-a", "node-1", csi.DefaultDriver)}
	for name, test := range map[string]struct {
		review  string
		objects []client.Object
		denied  string
	}{
		"well formed":           {nfsServiceReview("CREATE", well, ""), nil, ""},
		"two problems":          {nfsServiceReview("CREATE", `{"backends":[{"address":"a"}],"versions":[5]}`, ""), nil, "spec.backends[0].address"},
		"both are told":         {nfsServiceReview("CREATE", `{"backends":[{"address":"a"}],"versions":[5]}`, ""), nil, "spec.versions[0]"},
		"exposure changes":      {nfsServiceReview("UPDATE", `{"exposure":"Stable","backends":[{"address":"10.0.0.1"}]}`, well), nil, "can't be changed"},
		"port of mounted nodes": {nfsServiceReview("UPDATE", `{"port":2050,"backends":[{"address":"10.0.0.1"}]}`, well), world, "spec.port"},
		"port of nobody":        {nfsServiceReview("UPDATE", `{"port":2050,"backends":[{"address":"10.0.0.1"}]}`, well), world[:2], ""},
		"deleted while mounted": {nfsServiceReview("DELETE", "", well), world, "node-1 (pv-a)"},
		"deleted, not mounted":  {nfsServiceReview("DELETE", "", well), world[:2], ""},
		"another is mounted":    {nfsServiceReview("DELETE", "", well), []client.Object{nfsVolume("pv-a", csi.DefaultDriver, map[string]string{"service": "storage/other"}), world[2]}, ""},
		"mounted by default":    {nfsServiceReview("DELETE", "", well), []client.Object{nfsVolume("pv-g", volume.GKEDriver, nil), nfsAttached("pv-g", "node-2", volume.GKEDriver)}, "node-2 (pv-g)"},
		"of an unserved driver": {nfsServiceReview("DELETE", "", well), []client.Object{nfsVolume("pv-x", "nfs.csi.k8s.io", map[string]string{"service": "storage/files"}), nfsAttached("pv-x", "node-1", "nfs.csi.k8s.io")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			response := newRig(t, fakeClient(t, test.objects...)).ask(t, nfsServicesPath, test.review)
			if response.Allowed != (test.denied == "") {
				t.Fatalf("got %+v", response)
			}
			if test.denied != "" && !strings.Contains(response.Result.Message, test.denied) {
				t.Errorf("got %s", response.Result.Message)
			}
		})
	}
}

func TestNFSRulesAreOffWithoutDrivers(t *testing.T) {
	c, err := config.Load("")
	if err != nil {
		t.Fatal(err)
	}
	for _, nfs := range []*NFS{nil, {Live: nfs.NewNFSReader(nil, nil)}} {
		h := rig{NewRouter(c, nil, nil, nfs, NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler)), &atomic.Int32{}}
		for path, review := range reviewsOfEveryPath() {
			if !slices.Contains(nfsPaths, path) {
				continue
			}
			if response := h.ask(t, path, review); !response.Allowed || response.Patch != nil || response.Warnings != nil {
				t.Errorf("%s: got %+v", path, response)
			}
		}
	}
}

// A deletion that cannot be judged is to be tried again; volumes are never held up.
func TestUnreadableFactsHoldUpDeletionsOnly(t *testing.T) {
	broken := interceptor.NewClient(fakeClient(t), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("down")
		},
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("down")
		},
	})
	h := newRig(t, broken)
	if response := h.ask(t, nfsServicesPath, nfsServiceReview("DELETE", "", `{}`)); response.Allowed || response.Result.Code != http.StatusServiceUnavailable {
		t.Errorf("got %+v", response)
	}
	for _, path := range []string{nfsVolumesPath, nfsVolumeOptionsPath} {
		// An error, which failure policy Ignore lets pass.
		if status, body := h.post(path, nfsVolumeReview(volume.GKEDriver, `{"share":"/a"}`, "")); status != http.StatusInternalServerError {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

func TestNFSVolumesAreJudged(t *testing.T) {
	h := newRig(t, fakeClient(t, nfsService()))
	for name, test := range map[string]struct {
		review, denied, warned string
	}{
		"well formed":          {nfsVolumeReview(volume.GKEDriver, `{"share":"/a"}`, ""), "", ""},
		"no share":             {nfsVolumeReview(volume.GKEDriver, `{}`, ""), "spec.csi.volumeAttributes[share]", ""},
		"no service":           {nfsVolumeReview(csi.DefaultDriver, `{"share":"/a"}`, ""), "spec.csi.volumeAttributes[service]", ""},
		"service is not there": {nfsVolumeReview(csi.DefaultDriver, `{"share":"/a","service":"storage/none"}`, ""), "", "there is no NFSService storage/none"},
		"read-ahead no number": {nfsVolumeReview(volume.GKEDriver, `{"share":"/a"}`, `,"mountOptions":["read_ahead_kb=x"]`), "spec.mountOptions[0]", ""},
		"another driver":       {nfsVolumeReview("nfs.csi.k8s.io", `{}`, ""), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			response := h.ask(t, nfsVolumesPath, test.review)
			if response.Allowed != (test.denied == "") || test.denied != "" && !strings.Contains(response.Result.Message, test.denied) {
				t.Errorf("got %+v", response)
			}
			if warnings := strings.Join(response.Warnings, "\n"); !strings.Contains(warnings, test.warned) || test.warned == "" && warnings != "" {
				t.Errorf("got %s", warnings)
			}
		})
	}
}

func TestVolumesGetTheMountOptionsOfTheirService(t *testing.T) {
	for name, test := range map[string]struct {
		review, patch string
	}{
		"none of its own": {nfsVolumeReview(volume.GKEDriver, `{"share":"/a"}`, ""), `[{"op":"add","path":"/spec/mountOptions","value":["hard","vers=3"]}]`},
		"its own":         {nfsVolumeReview(volume.GKEDriver, `{"share":"/a"}`, `,"mountOptions":["soft","v4.1"]`), ""},
		"another driver":  {nfsVolumeReview("nfs.csi.k8s.io", `{"share":"/a"}`, ""), ""},
		"no such service": {nfsVolumeReview(csi.DefaultDriver, `{"share":"/a","service":"storage/none"}`, ""), ""},
		"no service":      {nfsVolumeReview(csi.DefaultDriver, `{"share":"/a"}`, ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			response := newRig(t, fakeClient(t, nfsService("hard"))).ask(t, nfsVolumeOptionsPath, test.review)
			if !response.Allowed || string(response.Patch) != test.patch {
				t.Errorf("got %+v, patch %s", response, response.Patch)
			}
		})
	}
}

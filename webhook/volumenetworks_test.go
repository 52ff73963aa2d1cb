package webhook

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
	"github.com/fairlead-io/fairlead/internal/testkit/reviews"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

var teamNet = multus.VolumeAttachment(multus.Network{Namespace: "team-x", Name: "nfs"})

// withVolumes is a cluster on storageNet with a class, and a volume pvc-a, bound to
// claim default/data, attached on node-1; servers may be on teamNet too if so.
func withVolumes(ready bool, claimAnnotations map[string]string) []client.Object {
	all := onNetwork()
	if ready {
		status := &all[0].(*v1alpha1.NetworkRollout).Status
		status.Clients.VolumeNetworks, status.Servers.VolumeNetworks = []string{teamNet.String()}, []string{teamNet.String()}
	}
	return slices.Concat(all, networkSettings(), []client.Object{
		clientDaemonSet(), network("team-x", "nfs"), clientPod("csi-1"),
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast", Annotations: map[string]string{rwx.VolumeNetworkAnnotation: "team-x/nfs"}}, Provisioner: "driver.longhorn.io"},
		persistentVolume("pvc-a", "data", nil), persistentVolume("pvc-b", "other", map[string]string{rwx.VolumeAddressesAnnotation: "10.0.0.9/24"}),
		objects.With(objects.Claim("data", ""), func(c *corev1.PersistentVolumeClaim) { c.UID, c.Annotations = "uid-data", claimAnnotations }),
		attachedVolume("pvc-a"),
	})
}

func persistentVolume(name, claim string, annotations map[string]string) client.Object {
	return objects.Volume(name, "driver.longhorn.io", name, claim, objects.Shared, func(pv *corev1.PersistentVolume) {
		pv.Annotations, pv.Spec.StorageClassName, pv.Spec.ClaimRef.UID = annotations, "fast", "uid-data"
	})
}

func TestVolumeNetworks(t *testing.T) {
	claim := func(annotation, value string) string {
		return reviews.Of(reviews.Claim, fmt.Sprintf(`"resource":{"group":"","version":"v1","resource":"persistentvolumeclaims"},"namespace":"default","name":"data","operation":"UPDATE",`+
			`"object":{"metadata":{"name":"data","namespace":"default","annotations":{%q:%q}},"spec":{"accessModes":["ReadWriteMany"],"volumeName":"pvc-a","storageClassName":"fast"}}`, annotation, value))
	}
	const attached = "the change takes effect when the volume is detached: pvc-a (node-1, pod default/web-0)"
	for name, test := range map[string]struct {
		ready    bool
		review   string
		denied   string
		warnings []string
	}{
		"network of the class, volume attached": {ready: true, review: claim(rwx.VolumeAddressesAnnotation, "10.0.0.10"),
			warnings: []string{attached}},
		"back to the default network": {ready: true, review: claim(rwx.VolumeNetworkAnnotation, ""), warnings: []string{attached}},
		"not ready": {review: claim(rwx.VolumeNetworkAnnotation, "team-x/nfs"),
			warnings: []string{"accepted; 1 CSI plugin pod restarts to join network team-x/nfs, each when no RWX volume is attached on its node", attached}},
		"address of another volume": {ready: true, review: claim(rwx.VolumeAddressesAnnotation, "10.0.0.9"),
			denied: `persistentvolumeclaims "data" is invalid: metadata.annotations[fairlead.io/volume-addresses]: Invalid value: "10.0.0.9": address 10.0.0.9 on network team-x/nfs is of another volume already: choose another`},
		"PersistentVolume keeps its address": {ready: true,
			review: reviews.Of(reviews.Volume, `"resource":{"group":"","version":"v1","resource":"persistentvolumes"},"name":"pvc-b","operation":"UPDATE",`+`"object":{"metadata":{"name":"pvc-b","annotations":{"fairlead.io/volume-addresses":"10.0.0.9"}},"spec":{"accessModes":["ReadWriteMany"],"storageClassName":"fast",`+`"claimRef":{"namespace":"default","name":"other"},"csi":{"driver":"driver.longhorn.io","volumeHandle":"pvc-b"}}}`)},
		"class with attached volumes": {ready: true,
			review:   reviews.Of(reviews.Class, `"resource":{"group":"storage.k8s.io","version":"v1","resource":"storageclasses"},"name":"fast","operation":"UPDATE",`+`"object":{"metadata":{"name":"fast","annotations":{"fairlead.io/volume-network":"kube-system/backup-net"}},"provisioner":"driver.longhorn.io"}`),
			warnings: []string{"accepted; 1 CSI plugin pod restarts to join network kube-system/backup-net, each when no RWX volume is attached on its node", attached}},
		"not permitted, of another driver": {
			review:   reviews.Of(reviews.Class, `"resource":{"group":"storage.k8s.io","version":"v1","resource":"storageclasses"},"name":"ebs","operation":"CREATE",`+`"object":{"metadata":{"name":"ebs","annotations":{"fairlead.io/volume-network":"kube-system/secret"}},"provisioner":"ebs.csi.aws.com"}`),
			warnings: []string{"has no effect: StorageClass ebs belongs to driver ebs.csi.aws.com, and Fairlead serves only driver.longhorn.io"}},
		"misspelled": {review: claim("fairlead.io/volume-netwrok", "team-x/nfs"),
			warnings: []string{"annotation fairlead.io/volume-netwrok is unknown to Fairlead and has no effect: did you mean fairlead.io/volume-network?"}},
		"class of another driver": {
			review:   reviews.Of(reviews.Class, `"resource":{"group":"storage.k8s.io","version":"v1","resource":"storageclasses"},"name":"ebs","operation":"CREATE",`+`"object":{"metadata":{"name":"ebs","annotations":{"fairlead.io/volume-network":"team-x/nfs"}},"provisioner":"ebs.csi.aws.com"}`),
			warnings: []string{"has no effect: StorageClass ebs belongs to driver ebs.csi.aws.com, and Fairlead serves only driver.longhorn.io"}},
	} {
		t.Run(name, func(t *testing.T) {
			response := newRig(t, fakeClient(t, withVolumes(test.ready, nil)...)).ask(t, registration.VolumeNetworksPath, test.review)
			must.True(t, response.Allowed == (test.denied == "") && slices.Equal(response.Warnings, test.warnings),
				"got %+v, %+v\nwant %q", response.Result, response.Warnings, test.warnings)
			must.True(t, test.denied == "" || strings.HasPrefix(response.Result.Message, test.denied) && response.Result.Details.Causes[0].Field == "metadata.annotations[fairlead.io/volume-addresses]",
				"got  %+v\nwant %s", response.Result, test.denied)
		})
	}
}

func TestServiceGoesToNetworkOfItsVolume(t *testing.T) {
	review := func(metadata, spec string) string {
		return reviews.Of(reviews.Service, `"namespace":"longhorn-system","operation":"CREATE","object":{"metadata":{"labels":{"longhorn.io/share-manager":"pvc-a"}`+metadata+`},"spec":{"type":"ClusterIP"`+spec+`}}`)
	}
	fixed := map[string]string{rwx.VolumeAddressesAnnotation: "10.0.0.10/24", rwx.VolumeMACAnnotation: "02:00:00:00:00:01"}
	waits := []string{"fairlead: volume waits for its network: StorageClass fast requests network team-x/nfs, which not every CSI plugin pod has joined; the volume stays on kube-system/storage-net until all have joined and the volume is detached"}
	for name, test := range map[string]struct {
		ready       bool
		annotations string
		warnings    []string
	}{
		"servers are ready for the network":     {true, `"fairlead.io/addresses":"10.0.0.10/24","fairlead.io/mac":"02:00:00:00:00:01","fairlead.io/network":"` + teamNet.String() + `"`, nil},
		"servers are not ready for the network": {false, `"fairlead.io/network":"kube-system/storage-net@lhnet1"`, waits},
	} {
		t.Run(name, func(t *testing.T) {
			h := newRig(t, fakeClient(t, withVolumes(test.ready, fixed)...))
			response := h.ask(t, servicesPath, review("", ""))
			must.Equal(t, response.Warnings, test.warnings, "warnings")
			must.Equal(t, string(response.Patch), `[{"op":"add","path":"/metadata/annotations","value":{`+test.annotations+`}},{"op":"add","path":"/spec/clusterIP","value":"None"}]`)
			// The API server prints equal warnings once when it calls the webhook again.
			again := h.ask(t, servicesPath, review(`,"annotations":{`+test.annotations+`}`, `,"clusterIP":"None"`))
			must.Equal(t, again.Warnings, test.warnings, "warnings of the second call")
		})
	}
}

func TestMisspelledAnnotationsCauseWarnings(t *testing.T) {
	const misspelled = `{"metadata":{"annotations":{"fairlead.io/optout":"true","a":"b"}}}`
	h := newRig(t, fakeClient(t, onNetwork()...))
	for path, review := range map[string]string{
		clientPodsPath:     reviews.Of(reviews.Pod, `"namespace":"longhorn-system","operation":"CREATE","object":`+misspelled),
		serverPodsPath:     reviews.Of(reviews.Pod, `"namespace":"longhorn-system","operation":"CREATE","object":`+misspelled),
		clientTemplatePath: reviews.Of(reviews.DaemonSet, `"namespace":"longhorn-system","operation":"CREATE","object":{"spec":{"template":`+misspelled+`}}`),
		servicesPath:       reviews.Of(reviews.Service, `"namespace":"longhorn-system","operation":"CREATE","object":`+misspelled),
	} {
		want := "annotation fairlead.io/optout is unknown to Fairlead and has no effect: did you mean fairlead.io/opt-out?"
		got := h.ask(t, path, review)
		must.Check(t, slices.Contains(got.Warnings, want), "%s: warnings %q", path, got.Warnings)
	}
}

package webhook

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
	"github.com/fairlead-io/fairlead/internal/storage"
)

var teamNet = storage.VolumeAttachment(storage.Network{Namespace: "team-x", Name: "nfs"})

// withVolumes is a cluster on storageNet with a class, and a volume pvc-a, bound to
// claim default/data, attached on node-1; servers may be on teamNet too if so.
func withVolumes(ready bool, claimAnnotations map[string]string) []client.Object {
	objects := onNetwork()
	if ready {
		status := &objects[0].(*v1alpha1.NetworkRollout).Status
		status.Clients.VolumeNetworks, status.Servers.VolumeNetworks = []string{teamNet.String()}, []string{teamNet.String()}
	}
	return append(objects,
		&longhorn.Setting{ObjectMeta: metav1.ObjectMeta{Namespace: "longhorn-system", Name: "storage-network"}, Value: "kube-system/storage-net"},
		&longhorn.Setting{ObjectMeta: metav1.ObjectMeta{Namespace: "longhorn-system", Name: "storage-network-for-rwx-volume-enabled"}, Value: "true"},
		&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "longhorn-system", Name: "longhorn-csi-plugin"}},
		network("team-x", "nfs"), clientPod("csi-1"),
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast", Annotations: map[string]string{storage.VolumeNetworkAnnotation: "team-x/nfs"}}, Provisioner: "driver.longhorn.io"},
		persistentVolume("pvc-a", "data", nil), persistentVolume("pvc-b", "other", map[string]string{storage.VolumeAddressesAnnotation: "10.0.0.9/24"}),
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data", UID: "uid-data", Annotations: claimAnnotations}},
		attachedVolume("pvc-a", "node-1", "web-0"),
	)
}

func persistentVolume(name, claim string, annotations map[string]string) client.Object {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, StorageClassName: "fast",
			ClaimRef:               &corev1.ObjectReference{Namespace: "default", Name: claim, UID: "uid-data"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "driver.longhorn.io", VolumeHandle: name}},
		},
	}
}

func TestVolumeNetworksOverTheWire(t *testing.T) {
	const (
		volumeKind = `{"group":"","version":"v1","kind":"PersistentVolume"}`
		classKind  = `{"group":"storage.k8s.io","version":"v1","kind":"StorageClass"}`
	)
	claim := func(annotation, value string) string {
		return reviewOf(claimKind, fmt.Sprintf(`"resource":{"group":"","version":"v1","resource":"persistentvolumeclaims"},"namespace":"default","name":"data","operation":"UPDATE",`+
			`"object":{"metadata":{"name":"data","namespace":"default","annotations":{%q:%q}},"spec":{"accessModes":["ReadWriteMany"],"volumeName":"pvc-a","storageClassName":"fast"}}`, annotation, value))
	}
	const attached = "takes effect when the volume is detached: pvc-a (node-1, pod default/web-0)"
	for name, test := range map[string]struct {
		ready    bool
		review   string
		denied   string
		warnings []string
	}{
		"the class's network, while it is attached elsewhere": {
			ready: true, review: claim(storage.VolumeAddressesAnnotation, "10.0.0.10"), warnings: []string{attached},
		},
		"back to the network of all": {ready: true, review: claim(storage.VolumeNetworkAnnotation, ""), warnings: []string{attached}},
		"not ready": {
			review: claim(storage.VolumeNetworkAnnotation, "team-x/nfs"),
			warnings: []string{
				"accepted; 1 CSI plugin pod restarts to join network team-x/nfs, each when no RWX volume is attached on its node",
				attached,
			},
		},
		"an address that another volume asks for": {
			ready: true, review: claim(storage.VolumeAddressesAnnotation, "10.0.0.9"),
			denied: `persistentvolumeclaims "data" is invalid: metadata.annotations[fairlead.io/volume-addresses]: Invalid value: "10.0.0.9": address 10.0.0.9 on network team-x/nfs is of volume pvc-b (StorageClass fast) already: choose another`,
		},
		"a PersistentVolume keeps its own": {
			ready: true, review: reviewOf(volumeKind, `"resource":{"group":"","version":"v1","resource":"persistentvolumes"},"name":"pvc-b","operation":"UPDATE",`+
				`"object":{"metadata":{"name":"pvc-b","annotations":{"fairlead.io/volume-addresses":"10.0.0.9"}},"spec":{"accessModes":["ReadWriteMany"],"storageClassName":"fast",`+
				`"claimRef":{"namespace":"default","name":"other"},"csi":{"driver":"driver.longhorn.io","volumeHandle":"pvc-b"}}}`),
		},
		"a class with attached volumes": {
			ready: true, review: reviewOf(classKind, `"resource":{"group":"storage.k8s.io","version":"v1","resource":"storageclasses"},"name":"fast","operation":"UPDATE",`+
				`"object":{"metadata":{"name":"fast","annotations":{"fairlead.io/volume-network":"kube-system/backup-net"}},"provisioner":"driver.longhorn.io"}`),
			warnings: []string{"accepted; 1 CSI plugin pod restarts to join network kube-system/backup-net, each when no RWX volume is attached on its node", attached},
		},
		"misspelled": {
			review:   claim("fairlead.io/volume-netwrok", "team-x/nfs"),
			warnings: []string{"annotation fairlead.io/volume-netwrok is unknown to Fairlead and has no effect: did you mean fairlead.io/volume-network?"},
		},
		"a class of somebody else": {
			review: reviewOf(classKind, `"resource":{"group":"storage.k8s.io","version":"v1","resource":"storageclasses"},"name":"ebs","operation":"CREATE",`+
				`"object":{"metadata":{"name":"ebs","annotations":{"fairlead.io/volume-network":"team-x/nfs"}},"provisioner":"ebs.csi.aws.com"}`),
			warnings: []string{"has no effect: StorageClass ebs is of driver ebs.csi.aws.com, and Fairlead works for driver.longhorn.io"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			response := newRig(t, fakeClient(t, withVolumes(test.ready, nil)...)).ask(t, volumeNetworksPath, test.review)
			if response.Allowed != (test.denied == "") || !slices.Equal(response.Warnings, test.warnings) {
				t.Fatalf("got %+v, %+v\nwant %q", response.Result, response.Warnings, test.warnings)
			}
			if test.denied != "" && (!strings.HasPrefix(response.Result.Message, test.denied) || response.Result.Details.Causes[0].Field != "metadata.annotations[fairlead.io/volume-addresses]") {
				t.Fatalf("got  %s\nwant %s", response.Result.Message, test.denied)
			}
		})
	}
}

func TestServiceGoesWhereItsVolumeAsks(t *testing.T) {
	review := reviewOf(serviceKind, `"namespace":"longhorn-system","operation":"CREATE","object":{"metadata":{"labels":{"longhorn.io/share-manager":"pvc-a"}},"spec":{"type":"ClusterIP"}}`)
	fixed := map[string]string{storage.VolumeAddressesAnnotation: "10.0.0.10/24", storage.VolumeMACAnnotation: "02:00:00:00:00:01"}
	patch := func(annotations string) string {
		return `[{"op":"add","path":"/metadata/annotations","value":{` + annotations + `}},{"op":"add","path":"/spec/clusterIP","value":"None"}]`
	}
	for name, test := range map[string]struct {
		ready    bool
		patch    string
		warnings []string
	}{
		"where servers may be": {
			ready: true,
			patch: patch(`"fairlead.io/addresses":"10.0.0.10/24","fairlead.io/mac":"02:00:00:00:00:01","fairlead.io/network":"` + teamNet.String() + `"`),
		},
		"where all are, until they may": {
			patch:    patch(`"fairlead.io/network":"kube-system/storage-net@lhnet1"`),
			warnings: []string{"fairlead: volume waits for its network: StorageClass fast asks for network team-x/nfs, which not every CSI plugin pod is on yet; the volume stays on kube-system/storage-net until they are and it is detached"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			response := newRig(t, fakeClient(t, withVolumes(test.ready, fixed)...)).ask(t, "/mutate/longhorn/services", review)
			if !slices.Equal(response.Warnings, test.warnings) {
				t.Errorf("warnings: got %q, want %q", response.Warnings, test.warnings)
			}
			if got := compact(t, response.Patch); got != test.patch {
				t.Errorf("got  %s\nwant %s", got, test.patch)
			}
		})
	}
}

func TestMisspelledAnnotationsAreWarnedOfWhereSeen(t *testing.T) {
	const misspelled = `{"metadata":{"annotations":{"fairlead.io/optout":"true","a":"b"}}}`
	h := newRig(t, fakeClient(t, onNetwork()...))
	for path, review := range map[string]string{
		clientPodsPath:                     reviewOf(podKind, `"namespace":"longhorn-system","operation":"CREATE","object":`+misspelled),
		"/mutate/longhorn/server-pods":     reviewOf(podKind, `"namespace":"longhorn-system","operation":"CREATE","object":`+misspelled),
		"/mutate/longhorn/client-template": reviewOf(daemonSetKind, `"namespace":"longhorn-system","operation":"CREATE","object":{"spec":{"template":`+misspelled+`}}`),
		"/mutate/longhorn/services":        reviewOf(serviceKind, `"namespace":"longhorn-system","operation":"CREATE","object":`+misspelled),
	} {
		want := "annotation fairlead.io/optout is unknown to Fairlead and has no effect: did you mean fairlead.io/opt-out?"
		if got := h.ask(t, path, review); !slices.Contains(got.Warnings, want) {
			t.Errorf("%s: warnings %q", path, got.Warnings)
		}
	}
}

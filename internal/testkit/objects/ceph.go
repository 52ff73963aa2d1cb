package objects

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
)

// Ceph's drivers, as Rook names them.
const (
	RBD    = "rook-ceph.rbd.csi.ceph.com"
	CephFS = "rook-ceph.cephfs.csi.ceph.com"
)

// CreatedAt sets when an object was created.
func CreatedAt[T client.Object](at metav1.Time) func(T) {
	return func(o T) { o.SetCreationTimestamp(at) }
}

// CephVolume is a volume of a Ceph cluster, with a handle and a claim that are named after it.
func CephVolume(name, driver, clusterID string, changes ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	return With(Volume(name, driver, "handle-"+name, "claim-"+name, InCluster(clusterID)), changes...)
}

// CephClass is a StorageClass of a Ceph cluster, with a provisioner's secret.
func CephClass(name, driver, clusterID, secret string) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: driver, Parameters: map[string]string{
		"clusterID": clusterID, "csi.storage.k8s.io/provisioner-secret-name": secret, "csi.storage.k8s.io/provisioner-secret-namespace": "rook-ceph",
	}}
}

// ClientPod of a driver's plugin on a node, on the host network.
func ClientPod(app, node string, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := Pod("rook-ceph", app+"-"+node, node)
	pod.Labels, pod.OwnerReferences = map[string]string{"app": app}, ownedByPlugin(app)
	pod.Spec.HostNetwork, pod.Status.Phase = true, corev1.PodRunning
	return With(pod, changes...)
}

// ownedByPlugin is the DaemonSet of a driver's plugin.
func ownedByPlugin(app string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: app, UID: types.UID("uid-" + app), Controller: ptr.To(true)}}
}

// FenceClass is a NetworkFenceClass of a Ceph cluster.
func FenceClass(name, driver, clusterID string) *csiaddons.NetworkFenceClass {
	return &csiaddons.NetworkFenceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: csiaddons.NetworkFenceClassSpec{
		Provisioner: driver, Parameters: map[string]string{"clusterID": clusterID},
	}}
}

// AddonsNode is the CSIAddonsNode of a driver's plugin: it reports the addresses of a node's client, in the boot of Node.
func AddonsNode(name, driver, nodeID, class string, cidrs ...string) *csiaddons.CSIAddonsNode {
	plugin := "csi-rbdplugin"
	if driver == CephFS {
		plugin = "csi-cephfsplugin"
	}
	return &csiaddons.CSIAddonsNode{
		ObjectMeta: metav1.ObjectMeta{Namespace: "rook-ceph", Name: name, OwnerReferences: ownedByPlugin(plugin), Annotations: map[string]string{"fairlead.io/reported-in-boot": "boot-" + nodeID}},
		Spec:       csiaddons.CSIAddonsNodeSpec{Driver: csiaddons.CSIAddonsNodeDriver{Name: driver, NodeID: nodeID}},
		Status: csiaddons.CSIAddonsNodeStatus{State: "Connected", NetworkFenceClientStatus: []csiaddons.NetworkFenceClientStatus{
			{NetworkFenceClassName: class, ClientDetails: []csiaddons.ClientDetail{{ID: "fsid", CIDRs: cidrs}}},
		}},
	}
}

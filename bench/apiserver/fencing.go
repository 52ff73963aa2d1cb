package apiserver

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/internal/fence"
)

const (
	cephNamespace = "rook-ceph"
	fenceClass    = "rbd"
	// CephDriver is the driver of all volumes.
	CephDriver = "rook-ceph.rbd.csi.ceph.com"
	// SharedVolume is on many nodes.
	SharedVolume = "pvc-shared"
)

// FencingSize of a cluster.
type FencingSize struct {
	Nodes, VolumesEach int
	// Holders are the nodes that have SharedVolume.
	Holders int
}

// NewFencing serves a cluster whose nodes all have as many volumes of Ceph's, are healthy and are on record.
func NewFencing(scheme *runtime.Scheme, size FencingSize) (*Server, error) {
	addons := schema.GroupVersion{Group: "csiaddons.openshift.io", Version: "v1alpha1"}
	own := schema.GroupVersion{Group: "fairlead.io", Version: "v1alpha1"}
	core, store := corev1.SchemeGroupVersion, storagev1.SchemeGroupVersion
	s := &Server{scheme: scheme, kinds: map[string]*kind{
		"nodes":                                      {gvk: core.WithKind("Node")},
		"pods":                                       {gvk: core.WithKind("Pod")},
		"persistentvolumes":                          {gvk: core.WithKind("PersistentVolume")},
		"volumeattachments.storage.k8s.io":           {gvk: store.WithKind("VolumeAttachment")},
		"csinodes.storage.k8s.io":                    {gvk: store.WithKind("CSINode")},
		"csidrivers.storage.k8s.io":                  {gvk: store.WithKind("CSIDriver")},
		"storageclasses.storage.k8s.io":              {gvk: store.WithKind("StorageClass")},
		"networkfences.csiaddons.openshift.io":       {gvk: addons.WithKind("NetworkFence"), custom: []custom{}},
		"networkfenceclasses.csiaddons.openshift.io": {gvk: addons.WithKind("NetworkFenceClass"), custom: []custom{}},
		"csiaddonsnodes.csiaddons.openshift.io":      {gvk: addons.WithKind("CSIAddonsNode"), custom: []custom{}},
		"nodefences.fairlead.io":                     {gvk: own.WithKind("NodeFence"), custom: []custom{}},
	}}
	s.kinds["csidrivers.storage.k8s.io"].typed = []runtime.Object{&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: CephDriver}, Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(true)}}}
	s.kinds["storageclasses.storage.k8s.io"].typed = []runtime.Object{&storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "block"}, Provisioner: CephDriver, Parameters: map[string]string{"clusterID": cephNamespace},
	}}
	if err := s.add("networkfenceclasses.csiaddons.openshift.io", map[string]any{
		"apiVersion": addons.String(), "kind": "NetworkFenceClass", "metadata": map[string]any{"name": fenceClass},
		"spec": map[string]any{"provisioner": CephDriver, "parameters": map[string]any{"clusterID": cephNamespace}},
	}); err != nil {
		return nil, err
	}
	if size.Holders > 0 {
		pv := cephVolume(0)
		pv.Name, pv.UID, pv.Spec.ClaimRef.Name = SharedVolume, SharedVolume, SharedVolume
		pv.Spec.CSI.VolumeHandle, pv.Spec.AccessModes = SharedVolume, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		s.kinds["persistentvolumes"].typed = append(s.kinds["persistentvolumes"].typed, pv)
	}
	for i := range size.Nodes {
		var volumes []*corev1.PersistentVolume
		for v := range size.VolumesEach {
			pv := cephVolume(i*size.VolumesEach + v)
			volumes = append(volumes, pv)
			s.kinds["persistentvolumes"].typed = append(s.kinds["persistentvolumes"].typed, pv)
		}
		if i < size.Holders {
			volumes = append(volumes, s.kinds["persistentvolumes"].typed[0].(*corev1.PersistentVolume))
		}
		if err := s.addFencedNode(i, volumes, addons, own); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func cephVolume(i int) *corev1.PersistentVolume {
	pv := persistentVolume(i)
	pv.Spec.AccessModes, pv.Spec.CSI.Driver = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, CephDriver
	pv.Spec.CSI.VolumeAttributes = map[string]string{"clusterID": cephNamespace, "pool": "replicapool", "imageName": "csi-vol-" + pv.Name}
	return pv
}

func (s *Server) addFencedNode(i int, volumes []*corev1.PersistentVolume, addons, own schema.GroupVersion) error {
	address := fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&0xff, i&0xff)
	n := node(i)
	n.UID = types.UID(fmt.Sprintf("uid-%d", i))
	n.Status.NodeInfo = corev1.NodeSystemInfo{BootID: fmt.Sprintf("boot-%d", i), SystemUUID: fmt.Sprintf("machine-%d", i)}
	n.Status.Conditions[0].LastTransitionTime = metav1.Unix(1_700_000_000, 0)
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
	s.kinds["csinodes.storage.k8s.io"].typed = append(s.kinds["csinodes.storage.k8s.io"].typed, &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: CephDriver, NodeID: n.Name}}},
	})
	var held []any
	for _, pv := range volumes {
		a := attachment(len(s.kinds["volumeattachments.storage.k8s.io"].typed), i)
		a.Spec.Attacher, a.Spec.Source.PersistentVolumeName = CephDriver, &pv.Name
		s.kinds["volumeattachments.storage.k8s.io"].typed = append(s.kinds["volumeattachments.storage.k8s.io"].typed, a)
		name := corev1.UniqueVolumeName(fence.UniqueName(CephDriver, pv.Spec.CSI.VolumeHandle))
		n.Status.VolumesInUse = append(n.Status.VolumesInUse, name)
		n.Status.VolumesAttached = append(n.Status.VolumesAttached, corev1.AttachedVolume{Name: name})
		held = append(held, map[string]any{"persistentVolume": pv.Name, "driver": CephDriver, "clusterID": cephNamespace})
	}
	s.kinds["nodes"].typed = append(s.kinds["nodes"].typed, n)
	for _, app := range []string{"csi-rbdplugin", "rook-ceph-osd"} {
		if err := s.addPod(fmt.Sprintf("%s-%d", app, i), i, map[string]string{"app": app}); err != nil {
			return err
		}
		pod := s.kinds["pods"].typed[len(s.kinds["pods"].typed)-1].(*corev1.Pod)
		pod.Namespace = cephNamespace
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: app, UID: types.UID("uid-" + app), Controller: ptr.To(true)}}
	}
	if err := s.add("csiaddonsnodes.csiaddons.openshift.io", map[string]any{
		"apiVersion": addons.String(), "kind": "CSIAddonsNode",
		"metadata": map[string]any{"name": "rbd-" + n.Name, "namespace": cephNamespace, "resourceVersion": "1",
			"annotations":     map[string]any{"fairlead.io/reported-in-boot": n.Status.NodeInfo.BootID + " pod://x"}, // as Fairlead marks what it believes
			"ownerReferences": []any{map[string]any{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "csi-rbdplugin", "uid": "uid-csi-rbdplugin"}}},
		"spec": map[string]any{"driver": map[string]any{"name": CephDriver, "endpoint": "pod://x", "nodeID": n.Name}},
		"status": map[string]any{"state": "Connected", "networkFenceClientStatus": []any{map[string]any{
			"networkFenceClassName": fenceClass, "ClientDetails": []any{map[string]any{"id": "a", "cidrs": []any{address + "/32"}}},
		}}},
	}); err != nil {
		return err
	}
	return s.add("nodefences.fairlead.io", map[string]any{
		"apiVersion": own.String(), "kind": "NodeFence", "metadata": map[string]any{"name": n.Name, "resourceVersion": "1", "labels": map[string]any{fence.PhaseLabel: "Healthy"}},
		"status": map[string]any{
			"phase": "Healthy", "reason": "Ready", "nodeName": n.Name, "node": map[string]any{"uid": n.UID, "bootID": n.Status.NodeInfo.BootID, "systemUUID": n.Status.NodeInfo.SystemUUID},
			"addresses": address + "/32", "volumes": held, "volumeCount": len(volumes),
			"identities": []any{map[string]any{"driver": CephDriver, "clusterID": cephNamespace, "class": fenceClass, "addresses": []any{
				map[string]any{"cidr": address + "/32", "source": fence.SourceCSIAddonsNode, "lastSeen": time.Now().UTC().Format(time.RFC3339)}}}},
		},
	})
}

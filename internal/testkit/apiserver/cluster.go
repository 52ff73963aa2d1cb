package apiserver

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/bench/sample"
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

// Size of a cluster.
type Size struct {
	Nodes, VolumesEach int
	// Holders are the nodes that have SharedVolume.
	Holders int
}

// New serves a cluster whose nodes all have as many volumes of Ceph's, are healthy and are on record.
func New(scheme *runtime.Scheme, size Size) (*Server, error) {
	s := newServer(scheme)
	s.add("csidrivers.storage.k8s.io", &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: CephDriver}, Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(true)}})
	s.add("storageclasses.storage.k8s.io", &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "block"}, Provisioner: CephDriver, Parameters: map[string]string{"clusterID": cephNamespace},
	})
	s.addCustom("networkfenceclasses.csiaddons.openshift.io", map[string]any{"name": fenceClass}, map[string]any{
		"spec": map[string]any{"provisioner": CephDriver, "parameters": map[string]any{"clusterID": cephNamespace}},
	})
	shared := volume(SharedVolume, corev1.ReadWriteMany)
	s.add("persistentvolumes", shared)
	plugin, err := sample.ClientPod()
	if err != nil {
		return nil, err
	}
	for i := range size.Nodes {
		var volumes []*corev1.PersistentVolume
		for v := range size.VolumesEach {
			pv := volume(fmt.Sprintf("pvc-%08d-5e0c-4f0e-9a3f-1f2e3d4c5b6a", i*size.VolumesEach+v), corev1.ReadWriteOnce)
			s.add("persistentvolumes", pv)
			volumes = append(volumes, pv)
		}
		if i < size.Holders {
			volumes = append(volumes, shared)
		}
		s.addNode(i, volumes, plugin)
	}
	return s, nil
}

// NodeName is the name of a node.
func NodeName(i int) string { return fmt.Sprintf("node-%03d", i) }

// written has the managed fields of an object that a manager wrote.
func written(fields string) []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{{
		Manager: "csi-provisioner", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(fields),
	}}
}

func volume(name string, mode corev1.PersistentVolumeAccessMode) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID("uid-" + name),
			Annotations:   map[string]string{"pv.kubernetes.io/provisioned-by": CephDriver, "volume.kubernetes.io/provisioner-deletion-secret-name": "", "volume.kubernetes.io/provisioner-deletion-secret-namespace": ""},
			Finalizers:    []string{"external-provisioner.volume.kubernetes.io/finalizer", "kubernetes.io/pv-protection", "external-attacher/" + CephDriver},
			ManagedFields: written(`{"f:metadata":{"f:annotations":{".":{},"f:pv.kubernetes.io/provisioned-by":{}}},"f:spec":{"f:accessModes":{},"f:capacity":{".":{},"f:storage":{}},"f:claimRef":{".":{},"f:apiVersion":{},"f:kind":{},"f:name":{},"f:namespace":{},"f:resourceVersion":{},"f:uid":{}},"f:csi":{".":{},"f:driver":{},"f:fsType":{},"f:volumeAttributes":{".":{},"f:clusterID":{},"f:pool":{},"f:imageName":{}},"f:volumeHandle":{}},"f:persistentVolumeReclaimPolicy":{},"f:storageClassName":{},"f:volumeMode":{}}}`),
		},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{mode}, StorageClassName: "block",
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")},
			ClaimRef: &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: "team-a", Name: "data-" + name, UID: "uid", ResourceVersion: "900"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: CephDriver, VolumeHandle: name, FSType: "ext4",
				VolumeAttributes: map[string]string{"clusterID": cephNamespace, "pool": "replicapool", "imageName": "csi-vol-" + name},
			}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
	}
}

// addNode adds a node with its attachments, plugin, addresses and record.
func (s *Server) addNode(i int, volumes []*corev1.PersistentVolume, plugin *corev1.Pod) {
	name, cidr := NodeName(i), fmt.Sprintf("10.%d.%d.%d/32", i>>16, i>>8&0xff, i&0xff)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{corev1.LabelHostname: name}}}
	n.Status.NodeInfo = corev1.NodeSystemInfo{BootID: "boot-" + name, SystemUUID: "machine-" + name}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(1_700_000_000, 0)}}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: cidr[:len(cidr)-len("/32")]}}
	for image := range 50 { // as many as a kubelet reports
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{SizeBytes: 1 << 28, Names: []string{
			fmt.Sprintf("registry.example.com/team/image-%d@sha256:%064d", image, image), fmt.Sprintf("registry.example.com/team/image-%d:v1.%d.0", image, image),
		}})
	}
	var held []any
	for _, pv := range volumes {
		s.add("volumeattachments.storage.k8s.io", &storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("csi-%064d", len(s.kinds["volumeattachments.storage.k8s.io"].names)), Annotations: map[string]string{"csi.alpha.kubernetes.io/node-id": name},
				Finalizers: []string{"external-attacher/" + CephDriver}, ManagedFields: written(`{"f:spec":{"f:attacher":{},"f:nodeName":{},"f:source":{"f:persistentVolumeName":{}}}}`),
			},
			Spec:   storagev1.VolumeAttachmentSpec{Attacher: CephDriver, NodeName: name, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv.Name}},
			Status: storagev1.VolumeAttachmentStatus{Attached: true},
		})
		unique := corev1.UniqueVolumeName(fence.UniqueName(CephDriver, pv.Spec.CSI.VolumeHandle))
		n.Status.VolumesInUse = append(n.Status.VolumesInUse, unique)
		n.Status.VolumesAttached = append(n.Status.VolumesAttached, corev1.AttachedVolume{Name: unique})
		held = append(held, map[string]any{
			"persistentVolume": pv.Name, "driver": CephDriver, "volumeHandle": pv.Spec.CSI.VolumeHandle, "clusterID": cephNamespace,
			"shared": slices.Contains(pv.Spec.AccessModes, corev1.ReadWriteMany),
		})
	}
	s.add("nodes", n)
	s.add("csinodes.storage.k8s.io", &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: CephDriver, NodeID: name}}},
	})
	for _, app := range []string{"csi-rbdplugin", "rook-ceph-osd"} {
		pod := plugin.DeepCopy()
		pod.Name, pod.Namespace, pod.UID, pod.Labels = app+"-"+name, cephNamespace, types.UID("uid-"+app+name), map[string]string{"app": app}
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: app, UID: types.UID("uid-" + app), Controller: ptr.To(true)}}
		pod.Spec.NodeName, pod.Spec.Containers = name, pod.Spec.Containers[:1]
		pod.Status = corev1.PodStatus{
			Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: "10.1.2.3"}}, StartTime: &metav1.Time{Time: time.Unix(1, 0)},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		}
		s.add("pods", pod)
	}
	s.addCustom("csiaddonsnodes.csiaddons.openshift.io", map[string]any{
		"name": "rbd-" + name, "namespace": cephNamespace,
		"annotations":     map[string]any{"fairlead.io/reported-in-boot": n.Status.NodeInfo.BootID + " pod://x"}, // as Fairlead marks what it believes
		"ownerReferences": []any{map[string]any{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "csi-rbdplugin", "uid": "uid-csi-rbdplugin"}},
	}, map[string]any{
		"spec": map[string]any{"driver": map[string]any{"name": CephDriver, "endpoint": "pod://x", "nodeID": name}},
		"status": map[string]any{"state": "Connected", "networkFenceClientStatus": []any{map[string]any{
			"networkFenceClassName": fenceClass, "ClientDetails": []any{map[string]any{"id": "a", "cidrs": []any{cidr}}},
		}}},
	})
	boot, ready := v1alpha1.Boot{SystemUUID: n.Status.NodeInfo.SystemUUID, BootID: n.Status.NodeInfo.BootID}, n.Status.Conditions[0].LastTransitionTime.UTC().Format(time.RFC3339)
	s.addCustom("nodefences.fairlead.io", map[string]any{"name": fence.RecordName(name, boot), "labels": map[string]any{fence.NodeLabel: name}}, map[string]any{
		"status": map[string]any{"phase": "Healthy", "reason": "Ready", "addresses": cidr, "volumeCount": int64(len(volumes))},
		"spec": map[string]any{
			"nodeName": name, "nodeUID": string(n.UID), "readyChanged": ready, "readySince": ready,
			"boot":    map[string]any{"bootID": boot.BootID, "systemUUID": boot.SystemUUID},
			"volumes": held,
			"identities": []any{map[string]any{"driver": CephDriver, "clusterID": cephNamespace, "class": fenceClass, "addresses": []any{
				map[string]any{"cidr": cidr, "source": fence.SourceCSIAddonsNode, "lastSeen": time.Now().UTC().Format(time.RFC3339)}}}},
		},
	})
}

func (s *Server) addCustom(resource string, metadata, object map[string]any) {
	gvk := s.kinds[resource].gvk
	object["apiVersion"], object["kind"], object["metadata"] = gvk.GroupVersion().String(), gvk.Kind, metadata
	s.add(resource, &unstructured.Unstructured{Object: object})
}

package caches

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/csiaddons"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/fence/taint"
)

// cacheFencing adds the objects that fencing reads. Of pods, these are only the pods of the
// fenced storage systems and the pods that wait for a fence.
func cacheFencing(kinds map[client.Object]cache.ByObject, pods map[string]cache.Config, fencing config.Fencing) {
	addons := map[string]cache.Config{}
	for _, p := range fencing.Profiles {
		addons[p.Namespace] = cache.Config{} // also if the profile's mode is off: the controller watches them
		if p.Mode == config.Off {
			continue
		}
		if _, cached := pods[p.Namespace]; !cached {
			pods[p.Namespace] = cache.Config{Transform: StoragePod}
		}
	}
	pods[metav1.NamespaceAll] = cache.Config{LabelSelector: labels.SelectorFromSet(labels.Set{fence.GatedLabel: "true"}), Transform: GatedPod}
	kinds[&csiaddons.CSIAddonsNode{}] = cache.ByObject{Namespaces: addons}
	kinds[&storagev1.CSINode{}] = cache.ByObject{Transform: fencedCSINode}
	kinds[&v1alpha1.NodeFence{}] = cache.ByObject{Transform: commonRecord}
	kinds[&storagev1.CSIDriver{}] = cache.ByObject{}
}

// NewCache is cache.New, which asks the API server whether a kind with options is namespaced and
// ends the controller if the kind is missing: csi-addons may be installed later.
func NewCache(c *rest.Config, o cache.Options) (cache.Cache, error) {
	scopes := &knownScopes{RESTMapper: o.Mapper, known: true}
	o.Mapper = scopes
	objects, err := cache.New(c, o)
	scopes.known = false
	return objects, err
}

// knownScopes answers for CSIAddonsNodes while a cache is built.
type knownScopes struct {
	meta.RESTMapper
	known bool
}

// RESTMapping implements meta.RESTMapper.
func (m *knownScopes) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if m.known && kind == csiaddons.GroupVersion.WithKind("CSIAddonsNode").GroupKind() {
		return &meta.RESTMapping{Scope: meta.RESTScopeNamespace}, nil
	}
	return m.RESTMapper.RESTMapping(kind, versions...)
}

// FencedNode is SlimNode that also keeps the node's identity and addresses, and the
// volumes that its kubelet reports.
func FencedNode(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	slim, err := SlimNode(node)
	if err != nil {
		return nil, err
	}
	if s, ok := slim.(*corev1.Node); ok {
		s.Status.NodeInfo = corev1.NodeSystemInfo{BootID: node.Status.NodeInfo.BootID, SystemUUID: node.Status.NodeInfo.SystemUUID}
		s.Status.Addresses = node.Status.Addresses
		s.Annotations = kept(node.Annotations, taint.NoTaintAnnotation, fence.RecordedLossAnnotation)
		s.Status.VolumesInUse, s.Status.VolumesAttached = node.Status.VolumesInUse, make([]corev1.AttachedVolume, len(node.Status.VolumesAttached))
		for i, a := range node.Status.VolumesAttached {
			if j := slices.Index(s.Status.VolumesInUse, a.Name); j >= 0 {
				a.Name = s.Status.VolumesInUse[j] // one text, not two
			}
			s.Status.VolumesAttached[i].Name = a.Name
		}
		for i, c := range s.Status.Conditions {
			if j := slices.IndexFunc(node.Status.Conditions, func(whole corev1.NodeCondition) bool { return whole.Type == c.Type }); j >= 0 {
				s.Status.Conditions[i].LastTransitionTime = node.Status.Conditions[j].LastTransitionTime
			}
		}
	}
	return slim, nil
}

// fencedCSINode keeps the drivers' IDs of a node.
func fencedCSINode(object any) (any, error) {
	n, ok := object.(*storagev1.CSINode)
	if !ok {
		return object, nil
	}
	slim := &storagev1.CSINode{ObjectMeta: slimMeta(n)}
	for _, d := range n.Spec.Drivers {
		slim.Spec.Drivers = append(slim.Spec.Drivers, storagev1.CSINodeDriver{Name: d.Name, NodeID: d.NodeID})
	}
	return slim, nil
}

// commonRecord keeps a whole NodeFence. Texts that many NodeFences have share memory.
func commonRecord(object any) (any, error) {
	if n, ok := object.(*v1alpha1.NodeFence); ok {
		n.ManagedFields = nil
		for i := range n.Status.Volumes {
			v := &n.Status.Volumes[i]
			v.Driver, v.ClusterID = common(v.Driver), common(v.ClusterID)
		}
	}
	return object, nil
}

// placeAttributes locate a volume in its Ceph cluster, to ask Ceph for the volume's clients.
var placeAttributes = []string{"pool", "imageName", "staticVolume", "subvolumePath", "rootPath", "fsName", "radosNamespace"}

// FencedVolume is SlimPersistentVolume that also keeps the volume's storage cluster, Secret and mode, and with
// places the volume's location in the storage cluster.
func FencedVolume(places bool) func(any) (any, error) {
	var same sharedMaps
	return func(object any) (any, error) {
		pv, ok := object.(*corev1.PersistentVolume)
		if !ok {
			return object, nil
		}
		secrets, mode := kept(pv.Annotations, DeletionSecretName, DeletionSecretNamespace), pv.Spec.VolumeMode
		var whose, where map[string]string
		if pv.Spec.CSI != nil {
			whose = kept(pv.Spec.CSI.VolumeAttributes, ClusterIDAttribute)
			if places {
				where = kept(pv.Spec.CSI.VolumeAttributes, placeAttributes...)
			}
		}
		if _, err := SlimPersistentVolume(pv); err != nil {
			return nil, err
		}
		pv.Annotations, pv.Spec.VolumeMode = same.of(merged(pv.Annotations, secrets)), mode
		if pv.Spec.CSI != nil {
			pv.Spec.CSI.VolumeAttributes = same.of(merged(pv.Spec.CSI.VolumeAttributes, whose))
			if where != nil { // locations are unique, so sharing the map saves nothing
				pv.Spec.CSI.VolumeAttributes = merged(pv.Spec.CSI.VolumeAttributes, where)
			}
		}
		return pv, nil
	}
}

// sharedMaps returns one shared map for equal maps.
type sharedMaps struct{ byText sync.Map }

// of returns the shared map with the same entries.
func (s *sharedMaps) of(entries map[string]string) map[string]string {
	if len(entries) == 0 {
		return nil
	}
	shared, _ := s.byText.LoadOrStore(fmt.Sprintf("%q", entries), entries)
	return shared.(map[string]string)
}

// FencedClass is SlimStorageClass that also keeps the storage cluster and the Secret of its volumes.
func FencedClass(object any) (any, error) {
	c, ok := object.(*storagev1.StorageClass)
	if !ok {
		return object, nil
	}
	slim, err := SlimStorageClass(c)
	if s, ok := slim.(*storagev1.StorageClass); ok {
		s.Parameters = kept(c.Parameters, ClusterIDAttribute, ProvisionerSecretName, ProvisionerSecretNamespace)
	}
	return slim, err
}

// kept returns the entries of some keys; nil if there are none.
func kept(all map[string]string, keys ...string) map[string]string {
	var some map[string]string
	for _, key := range keys {
		if value, ok := all[key]; ok {
			some = merged(some, map[string]string{key: value})
		}
	}
	return some
}

func merged(a, b map[string]string) map[string]string {
	if len(b) == 0 {
		return a
	}
	all := maps.Clone(b)
	maps.Copy(all, a)
	return all
}

// StoragePod keeps a storage pod's metadata, node and addresses, its scheduling gates, and whether the driver
// fences by itself.
func StoragePod(object any) (any, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		pod.ManagedFields = nil
		pod.Spec = corev1.PodSpec{Containers: selfFencingOnly(pod), NodeName: pod.Spec.NodeName, HostNetwork: pod.Spec.HostNetwork, SchedulingGates: pod.Spec.SchedulingGates}
		pod.Status = corev1.PodStatus{
			Phase: pod.Status.Phase, HostIPs: pod.Status.HostIPs, PodIPs: pod.Status.PodIPs,
			Conditions: slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type != corev1.PodReady }),
		}
	}
	return object, nil
}

// GatedPod keeps the scheduling gates and the claims of a pod that waits.
func GatedPod(object any) (any, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		slim := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, Labels: kept(pod.Labels, fence.GatedLabel)},
			Spec:       corev1.PodSpec{SchedulingGates: pod.Spec.SchedulingGates},
		}
		for _, v := range pod.Spec.Volumes {
			if v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
				slim.Spec.Volumes = append(slim.Spec.Volumes, v)
			}
		}
		return slim, nil
	}
	return object, nil
}

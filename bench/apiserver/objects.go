package apiserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/bench/sample"
	"github.com/fairlead-io/fairlead/internal/storage"
	"github.com/fairlead-io/fairlead/internal/storage/longhorn"
)

// Size of a cluster.
type Size struct {
	// PersistentVolumes, each with a claim; Volumes of them are Longhorn's and attached.
	PersistentVolumes, Volumes int
	Nodes                      int
	// Snapshots of each volume, which are in the status of its engine.
	Snapshots int
	// Asking are the claims that ask for a network.
	Asking int
}

// Large is the cluster of the requirement.
var Large = Size{PersistentVolumes: 20_000, Volumes: 3_000, Nodes: 100, Snapshots: 50}

func (s Size) String() string {
	return fmt.Sprintf("%d PersistentVolumes and claims, %d attached volumes with %d snapshots each, %d nodes", s.PersistentVolumes, s.Volumes, s.Snapshots, s.Nodes)
}

const (
	namespace = "longhorn-system"
	driver    = "driver.longhorn.io"
	replicas  = 3
)

var ofCluster = []string{
	"persistentvolumes", "nodes", "volumeattachments.storage.k8s.io", "storageclasses.storage.k8s.io", "priorityclasses.scheduling.k8s.io",
	"csinodes.storage.k8s.io", "csidrivers.storage.k8s.io", "networkfences.csiaddons.openshift.io", "networkfenceclasses.csiaddons.openshift.io", "nodefences.fairlead.io",
}

// New serves a cluster of a size.
func New(scheme *runtime.Scheme, size Size) (*Server, error) {
	core, lh := corev1.SchemeGroupVersion, schema.GroupVersion{Group: "longhorn.io", Version: "v1beta2"}
	own := schema.GroupVersion{Group: "fairlead.io", Version: "v1alpha1"}
	s := &Server{scheme: scheme, kinds: map[string]*kind{
		"persistentvolumes":                 {gvk: core.WithKind("PersistentVolume")},
		"persistentvolumeclaims":            {gvk: core.WithKind("PersistentVolumeClaim")},
		"pods":                              {gvk: core.WithKind("Pod")},
		"services":                          {gvk: core.WithKind("Service")},
		"nodes":                             {gvk: core.WithKind("Node")},
		"volumeattachments.storage.k8s.io":  {gvk: storagev1.SchemeGroupVersion.WithKind("VolumeAttachment")},
		"storageclasses.storage.k8s.io":     {gvk: storagev1.SchemeGroupVersion.WithKind("StorageClass")},
		"priorityclasses.scheduling.k8s.io": {gvk: schedulingv1.SchemeGroupVersion.WithKind("PriorityClass")},
		"daemonsets.apps":                   {gvk: appsv1.SchemeGroupVersion.WithKind("DaemonSet")},
		"deployments.apps":                  {gvk: appsv1.SchemeGroupVersion.WithKind("Deployment")},
		"network-attachment-definitions.k8s.cni.cncf.io": {gvk: schema.GroupVersionKind{Group: "k8s.cni.cncf.io", Version: "v1", Kind: "NetworkAttachmentDefinition"}},
		"volumes.longhorn.io":                            {gvk: lh.WithKind("Volume"), custom: []custom{}},
		"volumeattachments.longhorn.io":                  {gvk: lh.WithKind("VolumeAttachment"), custom: []custom{}},
		"engines.longhorn.io":                            {gvk: lh.WithKind("Engine"), custom: []custom{}},
		"replicas.longhorn.io":                           {gvk: lh.WithKind("Replica"), custom: []custom{}},
		"instancemanagers.longhorn.io":                   {gvk: lh.WithKind("InstanceManager"), custom: []custom{}},
		"backingimagemanagers.longhorn.io":               {gvk: lh.WithKind("BackingImageManager"), custom: []custom{}},
		"settings.longhorn.io":                           {gvk: lh.WithKind("Setting"), custom: []custom{}},
		"settings.fairlead.io":                           {gvk: own.WithKind("Setting"), custom: []custom{}},
		"nodes.longhorn.io":                              {gvk: lh.WithKind("Node"), custom: []custom{}},
		"networkrollouts.fairlead.io":                    {gvk: own.WithKind("NetworkRollout"), custom: []custom{}},
	}}
	s.kinds["storageclasses.storage.k8s.io"].typed = []runtime.Object{&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "longhorn"}, Provisioner: driver}}
	s.kinds["priorityclasses.scheduling.k8s.io"].typed = []runtime.Object{&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "longhorn-critical"}}, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "system-node-critical"}}}
	s.kinds["daemonsets.apps"].typed = []runtime.Object{&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "longhorn-csi-plugin"}}}
	s.kinds["network-attachment-definitions.k8s.cni.cncf.io"].typed = []runtime.Object{&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "team-x", Name: "nfs"}}}
	for i := range size.PersistentVolumes {
		s.kinds["persistentvolumes"].typed = append(s.kinds["persistentvolumes"].typed, persistentVolume(i))
		s.kinds["persistentvolumeclaims"].typed = append(s.kinds["persistentvolumeclaims"].typed, claim(i))
	}
	for i := range size.Asking {
		claim := s.kinds["persistentvolumeclaims"].typed[i].(*metav1.PartialObjectMetadata)
		claim.Annotations[storage.VolumeNetworkAnnotation] = "team-x/nfs"
	}
	for i := range size.Nodes {
		s.kinds["nodes"].typed = append(s.kinds["nodes"].typed, node(i))
		for _, name := range []string{"longhorn-csi-plugin", "instance-manager"} {
			if err := s.addPod(fmt.Sprintf("%s-%03d", name, i), i, labelsOf(name)); err != nil {
				return nil, err
			}
		}
		if err := s.add("instancemanagers.longhorn.io", instanceManager(size, i)); err != nil {
			return nil, err
		}
	}
	for i := range size.Volumes {
		s.kinds["volumeattachments.storage.k8s.io"].typed = append(s.kinds["volumeattachments.storage.k8s.io"].typed, attachment(i, i%size.Nodes))
		s.kinds["services"].typed = append(s.kinds["services"].typed, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: VolumeName(i), Labels: map[string]string{longhorn.Profile().VolumeLabel: VolumeName(i)}},
			Spec:       corev1.ServiceSpec{ClusterIP: "10.96.0.1"},
		})
		if err := s.addPod("share-manager-"+VolumeName(i), i%size.Nodes, serverLabels(i)); err != nil {
			return nil, err
		}
		for resource, object := range map[string]map[string]any{"volumes.longhorn.io": volume(size, i), "volumeattachments.longhorn.io": tickets(size, i), "engines.longhorn.io": engine(size, i)} {
			if err := s.add(resource, object); err != nil {
				return nil, err
			}
		}
		for n := range replicas {
			if err := s.add("replicas.longhorn.io", replica(size, i, n)); err != nil {
				return nil, err
			}
		}
	}
	return s, s.add("networkrollouts.fairlead.io", map[string]any{
		"apiVersion": own.String(), "kind": "NetworkRollout", "metadata": map[string]any{"name": "longhorn", "namespace": namespace},
		"status": map[string]any{"recorded": true, "clients": map[string]any{}, "servers": map[string]any{}},
	})
}

func (s *Server) add(resource string, object map[string]any) error {
	text, err := json.Marshal(managed(object))
	k := s.kinds[resource]
	k.custom = append(k.custom, custom{name: object["metadata"].(map[string]any)["name"].(string), object: text})
	return err
}

// VolumeName is the name of a volume, and of its PersistentVolume.
func VolumeName(i int) string { return fmt.Sprintf("pvc-%08d-5e0c-4f0e-9a3f-1f2e3d4c5b6a", i) }

// NodeName is the name of a node.
func NodeName(i int) string { return fmt.Sprintf("node-%03d", i) }

// written has the managed fields of an object that some manager wrote.
func written(fields string) []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{{
		Manager: "csi-provisioner", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
		FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
	}}
}

func persistentVolume(i int) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: VolumeName(i), UID: types.UID(fmt.Sprintf("%08d-73a6-4b5e-9d3d-0a1c9b6e4f11", i)), ResourceVersion: fmt.Sprint(1000 + i),
			Annotations:   map[string]string{"pv.kubernetes.io/provisioned-by": driver, "volume.kubernetes.io/provisioner-deletion-secret-name": "", "volume.kubernetes.io/provisioner-deletion-secret-namespace": ""},
			Finalizers:    []string{"external-provisioner.volume.kubernetes.io/finalizer", "kubernetes.io/pv-protection", "external-attacher/driver-longhorn-io"},
			ManagedFields: written(`{"f:metadata":{"f:annotations":{".":{},"f:pv.kubernetes.io/provisioned-by":{},"f:volume.kubernetes.io/provisioner-deletion-secret-name":{},"f:volume.kubernetes.io/provisioner-deletion-secret-namespace":{}},"f:finalizers":{".":{},"v:\"external-provisioner.volume.kubernetes.io/finalizer\"":{}}},"f:spec":{"f:accessModes":{},"f:capacity":{".":{},"f:storage":{}},"f:claimRef":{".":{},"f:apiVersion":{},"f:kind":{},"f:name":{},"f:namespace":{},"f:resourceVersion":{},"f:uid":{}},"f:csi":{".":{},"f:driver":{},"f:fsType":{},"f:volumeAttributes":{".":{},"f:dataLocality":{},"f:fromBackup":{},"f:fsType":{},"f:numberOfReplicas":{},"f:share":{},"f:staleReplicaTimeout":{},"f:storage.kubernetes.io/csiProvisionerIdentity":{}},"f:volumeHandle":{}},"f:persistentVolumeReclaimPolicy":{},"f:storageClassName":{},"f:volumeMode":{}}}`),
		},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, StorageClassName: "longhorn",
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")},
			ClaimRef: &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: "team-a", Name: fmt.Sprintf("data-%d", i), UID: types.UID(fmt.Sprintf("uid-%d", i)), ResourceVersion: "900"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: driver, VolumeHandle: VolumeName(i), FSType: "ext4",
				VolumeAttributes: map[string]string{"dataLocality": "disabled", "fromBackup": "", "fsType": "ext4", "numberOfReplicas": "3", "share": "true", "staleReplicaTimeout": "30", "storage.kubernetes.io/csiProvisionerIdentity": "1700000000000-8081-driver.longhorn.io"},
			}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
	}
}

func claim(i int) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team-a", Name: fmt.Sprintf("data-%d", i), UID: types.UID(fmt.Sprintf("uid-%d", i)), ResourceVersion: fmt.Sprint(2000 + i),
		Labels:        map[string]string{"app.kubernetes.io/name": "web", "app.kubernetes.io/instance": fmt.Sprintf("web-%d", i)},
		Annotations:   map[string]string{"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes", "volume.beta.kubernetes.io/storage-provisioner": driver, "volume.kubernetes.io/storage-provisioner": driver},
		Finalizers:    []string{"kubernetes.io/pvc-protection"},
		ManagedFields: written(`{"f:metadata":{"f:annotations":{"f:pv.kubernetes.io/bind-completed":{},"f:pv.kubernetes.io/bound-by-controller":{},"f:volume.beta.kubernetes.io/storage-provisioner":{},"f:volume.kubernetes.io/storage-provisioner":{}},"f:labels":{".":{},"f:app.kubernetes.io/instance":{},"f:app.kubernetes.io/name":{}}},"f:spec":{"f:accessModes":{},"f:resources":{"f:requests":{".":{},"f:storage":{}}},"f:storageClassName":{},"f:volumeMode":{},"f:volumeName":{}}}`),
	}}
}

func attachment(i, onNode int) *storagev1.VolumeAttachment {
	pv := VolumeName(i)
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("csi-%064d", i), ResourceVersion: "1", Annotations: map[string]string{"csi.alpha.kubernetes.io/node-id": NodeName(onNode)}, Finalizers: []string{"external-attacher/driver-longhorn-io"},
			ManagedFields: written(`{"f:spec":{"f:attacher":{},"f:nodeName":{},"f:source":{"f:persistentVolumeName":{}}}}`),
		},
		Spec:   storagev1.VolumeAttachmentSpec{Attacher: driver, NodeName: NodeName(onNode), Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}},
		Status: storagev1.VolumeAttachmentStatus{Attached: true},
	}
}

func node(i int) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: NodeName(i), Labels: map[string]string{"kubernetes.io/hostname": NodeName(i)}}}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("16")}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for image := range 50 { // as many as a kubelet reports
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{SizeBytes: 1 << 28, Names: []string{
			fmt.Sprintf("registry.example.com/team/image-%d@sha256:%064d", image, image), fmt.Sprintf("registry.example.com/team/image-%d:v1.%d.0", image, image),
		}})
	}
	return n
}

// addPod adds a component of Longhorn's, as large as a CSI plugin pod, on the storage network.
func (s *Server) addPod(name string, onNode int, labels map[string]string) error {
	pod, err := sample.ClientPod()
	if err != nil {
		return err
	}
	pod.Name, pod.UID, pod.ResourceVersion = name, types.UID("uid-"+name), fmt.Sprint(1+len(s.kinds["pods"].typed))
	pod.Spec.NodeName = NodeName(onNode)
	if labels != nil { // they have one container
		pod.Labels, pod.Spec.Containers = labels, pod.Spec.Containers[:1]
		if volume := labels[longhorn.Profile().VolumeLabel]; volume != "" {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "longhorn.io/v1beta2", Kind: "ShareManager", Name: volume, UID: "uid", Controller: ptr.To(true)}}
		}
	}
	pod.Annotations = map[string]string{
		storage.NetworksAnnotation: `[{"namespace": "kube-system", "name": "storage-net", "interface": "lhnet1"}]`,
		"k8s.v1.cni.cncf.io/network-status": `[{"name":"cbr0","interface":"eth0","ips":["10.1.2.3"],"mac":"02:00:00:00:00:01","default":true,"dns":{}},` +
			`{"name":"kube-system/storage-net","interface":"lhnet1","ips":["192.168.1.2"],"mac":"02:00:00:00:00:02","dns":{}}]`,
	}
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: "10.1.2.3"}}, StartTime: &metav1.Time{Time: time.Unix(1, 0)},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	s.kinds["pods"].typed = append(s.kinds["pods"].typed, pod)
	return nil
}

// labelsOf the pods of a component; nil leaves those of a CSI plugin pod.
func labelsOf(component string) map[string]string {
	if component != "instance-manager" {
		return nil
	}
	labels := maps.Clone(longhorn.Profile().InstanceManagerLabels)
	labels["longhorn.io/data-engine"] = "v1"
	return labels
}

func serverLabels(volume int) map[string]string {
	labels := maps.Clone(longhorn.Profile().ServerLabels)
	labels[longhorn.Profile().VolumeLabel] = VolumeName(volume)
	return labels
}

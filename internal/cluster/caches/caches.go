package caches

import (
	"maps"
	"unique"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/storage"
	"github.com/fairlead-io/fairlead/internal/storage/longhorn"
)

// WebhookCache holds the network records. The rules read other objects live, and
// rarely. Holders of volumes have their own watches (fencing.HolderReader).
func WebhookCache(profiles []storage.Profile) cache.Options {
	options := cache.Options{
		ReaderFailOnMissingInformer: true,
		DefaultTransform:            cache.TransformStripManagedFields(),
		ByObject:                    map[client.Object]cache.ByObject{},
	}
	if len(profiles) > 0 {
		options.ByObject[&v1alpha1.NetworkRollout{}] = cache.ByObject{Namespaces: inNamespaces(profiles)}
	}
	return options
}

// ControllerCache holds the objects of the storage systems, in their namespaces, and
// the few fields in use of the cluster's volumes and nodes. The cache grows with
// nodes and storage objects, not with pods.
func ControllerCache(profiles []storage.Profile, fencing config.Fencing) (cache.Options, error) {
	nodes, volumes, classes := SlimNode, SlimPersistentVolume, SlimStorageClass
	if fencing.On() {
		nodes, volumes, classes = FencedNode, FencedVolume(fencing.CephClients.Mode != config.Off), FencedClass
	}
	options := cache.Options{
		ReaderFailOnMissingInformer: false,
		DefaultTransform:            cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Node{}:                {Transform: nodes},
			&corev1.PersistentVolume{}:    {Transform: volumes},
			&storagev1.StorageClass{}:     {Transform: classes},
			&storagev1.VolumeAttachment{}: {Transform: SlimVolumeAttachment},
		},
	}
	pods := map[string]cache.Config{}
	if len(profiles) > 0 {
		if err := cacheProfiles(options.ByObject, pods, profiles); err != nil {
			return options, err
		}
	}
	if fencing.On() {
		cacheFencing(options.ByObject, pods, fencing)
	}
	if len(pods) > 0 { // an empty map would select all namespaces
		options.ByObject[&corev1.Pod{}] = cache.ByObject{Namespaces: pods}
	}
	return options, nil
}

// cacheProfiles adds the objects that the duties of shared volumes read.
func cacheProfiles(kinds map[client.Object]cache.ByObject, pods map[string]cache.Config, profiles []storage.Profile) error {
	services, deployments := map[string]cache.Config{}, map[string]cache.Config{}
	for _, p := range profiles {
		labelled, err := labels.NewRequirement(p.VolumeLabel, selection.Exists, nil)
		if err != nil {
			return err
		}
		services[p.Namespace] = cache.Config{LabelSelector: labels.NewSelector().Add(*labelled)}
		deployments[p.Namespace] = cache.Config{LabelSelector: labels.SelectorFromSet(p.ManagedLabels)}
		pods[p.Namespace] = cache.Config{Transform: SlimPods(profiles)}
	}
	here := cache.ByObject{Namespaces: inNamespaces(profiles)}
	slim := cache.ByObject{Namespaces: inNamespaces(profiles), Transform: slimObject}
	maps.Copy(kinds, map[client.Object]cache.ByObject{
		&v1alpha1.NetworkRollout{}:   here,
		&v1alpha1.Setting{}:          here,
		&longhorn.Setting{}:          here,
		&longhorn.Volume{}:           here,
		&longhorn.VolumeAttachment{}: slim,
		&longhorn.ShareManager{}:     here,
		&longhorn.InstanceManager{}:  slim, &longhorn.BackingImageManager{}: slim,
		&longhorn.Engine{}: slim, &longhorn.Replica{}: slim, &longhorn.Node{}: slim,
		&corev1.Service{}: {Namespaces: services},
		//lint:ignore SA1019 for the readers of the deprecated API
		&corev1.Endpoints{}:          here,
		&discoveryv1.EndpointSlice{}: {Namespaces: inNamespaces(profiles), Label: labels.SelectorFromSet(labels.Set{discoveryv1.LabelManagedBy: storage.SliceManager})},
		// There are few. That of the client pods is known by name, the others by label.
		&appsv1.DaemonSet{}:           here,
		&appsv1.Deployment{}:          {Namespaces: deployments},
		&schedulingv1.PriorityClass{}: {Transform: slimPriorityClass},
		ClaimMetadata():               {Transform: SlimMetadata},
	})
	return nil
}

func inNamespaces(profiles []storage.Profile) map[string]cache.Config {
	namespaces := map[string]cache.Config{}
	for _, p := range profiles {
		namespaces[p.Namespace] = cache.Config{}
	}
	return namespaces
}

// The slim copies are read-only: writing one back would drop fields.

func SlimPersistentVolume(object any) (any, error) {
	if pv, ok := object.(*corev1.PersistentVolume); ok {
		annotations := volumeAnnotations(pv.Annotations)
		pv.ObjectMeta = slimMeta(pv)
		pv.Annotations = annotations
		slim := corev1.PersistentVolumeSpec{AccessModes: pv.Spec.AccessModes, StorageClassName: common(pv.Spec.StorageClassName)}
		if ref := pv.Spec.ClaimRef; ref != nil {
			slim.ClaimRef = &corev1.ObjectReference{Namespace: common(ref.Namespace), Name: ref.Name, UID: ref.UID}
		}
		if csi := pv.Spec.CSI; csi != nil {
			slim.CSI = &corev1.CSIPersistentVolumeSource{Driver: common(csi.Driver), VolumeHandle: csi.VolumeHandle}
			for _, key := range []string{longhorn.MigratableAttribute, longhorn.EngineAttribute} {
				if value, ok := csi.VolumeAttributes[key]; ok {
					if slim.CSI.VolumeAttributes == nil {
						slim.CSI.VolumeAttributes = map[string]string{}
					}
					slim.CSI.VolumeAttributes[key] = value
				}
			}
		}
		pv.Spec = slim
		pv.Status = corev1.PersistentVolumeStatus{Phase: pv.Status.Phase}
	}
	return object, nil
}

// ClaimMetadata is an object to read a claim's metadata into. Clusters have many claims, so only metadata is read.
func ClaimMetadata() *metav1.PartialObjectMetadata {
	var claim metav1.PartialObjectMetadata
	claim.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(storage.ClaimKind))
	return &claim
}

func SlimMetadata(object any) (any, error) {
	if o, ok := object.(*metav1.PartialObjectMetadata); ok {
		o.ObjectMeta = metav1.ObjectMeta{
			Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, CreationTimestamp: o.CreationTimestamp,
			Annotations: volumeAnnotations(o.Annotations),
		}
	}
	return object, nil
}

func SlimStorageClass(object any) (any, error) {
	if c, ok := object.(*storagev1.StorageClass); ok {
		return &storagev1.StorageClass{
			ObjectMeta:  metav1.ObjectMeta{Name: c.Name, UID: c.UID, ResourceVersion: c.ResourceVersion, Annotations: volumeAnnotations(c.Annotations)},
			Provisioner: c.Provisioner,
		}, nil
	}
	return object, nil
}

// volumeAnnotations returns the annotations that request a per-volume network; nil if there are none.
func volumeAnnotations(annotations map[string]string) map[string]string {
	var kept map[string]string
	for _, key := range storage.VolumeAnnotations() {
		if value, ok := annotations[key]; ok {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
		}
	}
	return kept
}

func SlimVolumeAttachment(object any) (any, error) {
	if va, ok := object.(*storagev1.VolumeAttachment); ok {
		va.ObjectMeta, va.Status = slimMeta(va), storagev1.VolumeAttachmentStatus{}
		va.Spec.Attacher, va.Spec.NodeName = common(va.Spec.Attacher), common(va.Spec.NodeName)
	}
	return object, nil
}

// slimMeta keeps the identity and the times of an object.
func slimMeta(o metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
		CreationTimestamp: o.GetCreationTimestamp(), DeletionTimestamp: o.GetDeletionTimestamp(),
	}
}

// common returns a text that many objects share: equal texts use the same memory.
func common(text string) string { return unique.Make(text).Value() }

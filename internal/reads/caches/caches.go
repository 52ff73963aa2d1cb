package caches

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

// ControllerCache holds the objects of the storage systems, in their namespaces, and
// the few fields in use of the cluster's volumes and nodes. The cache grows with
// nodes and storage objects, not with pods.
func ControllerCache(names *longhorn.Names, fencing config.Fencing) (cache.Options, error) {
	options := cache.Options{
		ReaderFailOnMissingInformer: false,
		DefaultTransform:            cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Node{}:            {Transform: SlimNode},
			&storagev1.StorageClass{}: {Transform: SlimStorageClass},
		},
	}
	pods := map[string]cache.Config{}
	if names != nil {
		if err := cacheLonghorn(options.ByObject, pods, *names); err != nil {
			return options, err
		}
	}
	if fencing.On() {
		cacheFencing(options.ByObject, pods, fencing)
	}
	if len(pods) > 0 { // an empty map would select all namespaces
		options.ByObject[&corev1.Pod{}] = cache.ByObject{Namespaces: pods, Transform: SlimPods(names)}
	}
	return options, nil
}

// cacheLonghorn adds the objects that the duties for Longhorn read.
func cacheLonghorn(kinds map[client.Object]cache.ByObject, pods map[string]cache.Config, names longhorn.Names) error {
	labelled, err := labels.NewRequirement(names.VolumeLabel, selection.Exists, nil)
	if err != nil {
		return err
	}
	pods[names.Namespace] = cache.Config{}
	only := func(selector labels.Selector) map[string]cache.Config {
		return map[string]cache.Config{names.Namespace: {LabelSelector: selector}}
	}
	here := cache.ByObject{Namespaces: only(nil)}
	slim := cache.ByObject{Namespaces: only(nil), Transform: slimObject}
	maps.Copy(kinds, map[client.Object]cache.ByObject{
		&corev1.PersistentVolume{}:    {Transform: SlimPersistentVolume},
		&storagev1.VolumeAttachment{}: {Transform: SlimVolumeAttachment},
		&v1alpha1.NetworkRollout{}:    here,
		&v1alpha1.Setting{}:           here,
		&longhorn.Setting{}:           here,
		&longhorn.Volume{}:            here,
		&longhorn.VolumeAttachment{}:  slim,
		&longhorn.ShareManager{}:      here,
		&longhorn.InstanceManager{}:   slim, &longhorn.BackingImageManager{}: slim,
		&longhorn.Engine{}: slim, &longhorn.Replica{}: slim, &longhorn.Node{}: slim,
		&corev1.Service{}: {Namespaces: only(labels.NewSelector().Add(*labelled))},
		//lint:ignore SA1019 for the readers of the deprecated API
		&corev1.Endpoints{}:          here,
		&discoveryv1.EndpointSlice{}: {Namespaces: only(nil), Label: labels.SelectorFromSet(labels.Set{discoveryv1.LabelManagedBy: rwx.SliceManager})},
		// There are few. That of the client pods is known by name, the others by label.
		&appsv1.DaemonSet{}:           here,
		&appsv1.Deployment{}:          {Namespaces: only(labels.SelectorFromSet(names.ManagedLabels))},
		&schedulingv1.PriorityClass{}: {Transform: slimPriorityClass},
		ClaimMetadata():               {Transform: SlimMetadata},
	})
	return nil
}

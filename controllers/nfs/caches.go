// Package nfs holds what the controllers of NFS services share; they are in the
// packages below it.
package nfs

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/nfs/publish"
)

// Published is what the writers of NFS services and of Ondat's volumes read: the
// Services and slices that they have written.
func Published() (cache.Options, error) {
	ours, err := labels.NewRequirement(publish.ServiceLabel, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, fmt.Errorf("choosing what to cache: %w", err)
	}
	published := cache.ByObject{Label: labels.NewSelector().Add(*ours)}
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Service{}:            published,
			&discoveryv1.EndpointSlice{}: published,
		},
	}, nil
}

// Caches is what the controllers of NFS services read: what is published, NFSServices,
// and of nodes, PersistentVolumes and VolumeAttachments the few fields that are read.
// Volumes and attachments of other drivers are kept by name. drivers are those that
// are served. The API server must know NFSServices: a kind with options is looked up
// at the start.
func Caches(drivers []string) (cache.Options, error) {
	options, err := Published()
	if err != nil {
		return cache.Options{}, err
	}
	slim := slimmer{drivers: drivers}
	maps.Copy(options.ByObject, map[client.Object]cache.ByObject{
		&v1alpha1.NFSService{}:        {},
		&corev1.Node{}:                {Transform: slim.node},
		&corev1.PersistentVolume{}:    {Transform: slim.volume},
		&storagev1.VolumeAttachment{}: {Transform: slim.attachment},
	})
	return options, nil
}

// slimmer makes copies for reading; what is written back is patches of single fields.
type slimmer struct{ drivers []string }

func (s slimmer) node(object any) (any, error) {
	if n, ok := object.(*corev1.Node); ok {
		slim := &corev1.Node{ObjectMeta: slimMeta(n)}
		if zone, ok := n.Labels[corev1.LabelTopologyZone]; ok {
			slim.Labels = map[string]string{corev1.LabelTopologyZone: zone}
		}
		for _, d := range s.drivers {
			if address, ok := n.Annotations[csi.AddressKey(d)]; ok {
				if slim.Annotations == nil {
					slim.Annotations = map[string]string{}
				}
				slim.Annotations[csi.AddressKey(d)] = address
			}
		}
		return slim, nil
	}
	return object, nil
}

func (s slimmer) volume(object any) (any, error) {
	if pv, ok := object.(*corev1.PersistentVolume); ok {
		slim := &corev1.PersistentVolume{ObjectMeta: slimMeta(pv)}
		if pv.Spec.CSI != nil && slices.Contains(s.drivers, pv.Spec.CSI.Driver) {
			slim.Spec.CSI, slim.Finalizers = pv.Spec.CSI, pv.Finalizers
		}
		return slim, nil
	}
	return object, nil
}

func (s slimmer) attachment(object any) (any, error) {
	if va, ok := object.(*storagev1.VolumeAttachment); ok {
		if slices.Contains(s.drivers, va.Spec.Attacher) {
			va.ManagedFields = nil
			return va, nil
		}
		return &storagev1.VolumeAttachment{ObjectMeta: slimMeta(va), Spec: storagev1.VolumeAttachmentSpec{Attacher: va.Spec.Attacher}}, nil
	}
	return object, nil
}

func slimMeta(o metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(), DeletionTimestamp: o.GetDeletionTimestamp()}
}

package nfsreads

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
)

// Reader reads NFSServices and the attachments of their volumes.
type Reader struct {
	Objects client.Reader
	Drivers Drivers
}

// Service returns an NFSService, or nil if there is none.
func (r *Reader) Service(ctx context.Context, key types.NamespacedName) (*v1alpha1.NFSService, error) {
	var s v1alpha1.NFSService
	if err := r.Objects.Get(ctx, key, &s); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading NFSService %s: %w", key, err)
	}
	return &s, nil
}

// Services returns all NFSServices, sorted by namespace and name.
func (r *Reader) Services(ctx context.Context) ([]v1alpha1.NFSService, error) {
	var services []v1alpha1.NFSService
	err := lists.ForEach(ctx, r.Objects, &v1alpha1.NFSServiceList{}, func(s *v1alpha1.NFSService) { services = append(services, *s.DeepCopy()) })
	if err != nil {
		return nil, fmt.Errorf("listing NFSServices: %w", err)
	}
	slices.SortFunc(services, func(a, b v1alpha1.NFSService) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return services, nil
}

// Use is the use of one NFSService.
type Use struct {
	// Volumes are the PersistentVolumes of the service, sorted.
	Volumes []string
	// Attachments of these volumes, sorted by node and volume.
	Attachments []Attachment
}

// Uses returns the use of every NFSService with a PersistentVolume or an attached
// volume. It reads all PersistentVolumes, then all VolumeAttachments.
func (r *Reader) Uses(ctx context.Context) (map[types.NamespacedName]*Use, error) {
	uses, sources := map[types.NamespacedName]*Use{}, map[string]*corev1.CSIPersistentVolumeSource{}
	of := func(service types.NamespacedName) *Use {
		if uses[service] == nil {
			uses[service] = &Use{}
		}
		return uses[service]
	}
	err := lists.ForEach(ctx, r.Objects, &corev1.PersistentVolumeList{}, func(pv *corev1.PersistentVolume) {
		if pv.Spec.CSI == nil {
			return
		}
		if service, err := r.Drivers.OfVolume(pv.Spec.CSI, pv.Name); err == nil {
			sources[pv.Name] = pv.Spec.CSI.DeepCopy()
			of(service).Volumes = append(of(service).Volumes, pv.Name)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listing PersistentVolumes: %w", err)
	}
	volumes := func(name string) (*corev1.CSIPersistentVolumeSource, error) {
		if source := sources[name]; source != nil {
			return source, nil
		}
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "persistentvolumes"}, name)
	}
	err = lists.ForEach(ctx, r.Objects, &storagev1.VolumeAttachmentList{}, func(va *storagev1.VolumeAttachment) {
		if a, ok, _ := r.Drivers.Attachment(va, volumes); ok {
			of(a.Service).Attachments = append(of(a.Service).Attachments, a)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listing VolumeAttachments: %w", err)
	}
	for _, u := range uses {
		slices.Sort(u.Volumes)
		slices.SortFunc(u.Attachments, func(a, b Attachment) int {
			return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.PersistentVolume, b.PersistentVolume))
		})
	}
	return uses, nil
}

// Names are the drivers, sorted.
func (d Drivers) Names() []string { return slices.Sorted(maps.Keys(d)) }

package nfs

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/lists"
	"github.com/fairlead-io/fairlead/internal/csi"
	nfsvolume "github.com/fairlead-io/fairlead/internal/nfs/volume"
)

// NFSReader reads NFSServices and the attachments of their volumes.
type NFSReader struct {
	objects client.Reader
	drivers map[string]types.NamespacedName
}

// NewNFSReader returns a reader. drivers has the NFS CSI drivers that Fairlead serves,
// each with its default NFSService; an empty name is no default.
func NewNFSReader(objects client.Reader, drivers map[string]types.NamespacedName) *NFSReader {
	return &NFSReader{objects, drivers}
}

// Drivers returns the drivers that Fairlead serves, sorted.
func (r *NFSReader) Drivers() []string { return slices.Sorted(maps.Keys(r.drivers)) }

// Default returns a driver's default NFSService, and whether Fairlead serves the driver.
func (r *NFSReader) Default(driver string) (types.NamespacedName, bool) {
	key, ok := r.drivers[driver]
	return key, ok
}

// Service returns an NFSService, or nil if there is none.
func (r *NFSReader) Service(ctx context.Context, key types.NamespacedName) (*v1alpha1.NFSService, error) {
	var s v1alpha1.NFSService
	if err := r.objects.Get(ctx, key, &s); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading NFSService %s: %w", key, err)
	}
	return &s, nil
}

// Services returns all NFSServices, sorted by namespace and name.
func (r *NFSReader) Services(ctx context.Context) ([]v1alpha1.NFSService, error) {
	var services []v1alpha1.NFSService
	err := lists.ForEach(ctx, r.objects, &v1alpha1.NFSServiceList{}, func(s *v1alpha1.NFSService) { services = append(services, *s.DeepCopy()) })
	if err != nil {
		return nil, fmt.Errorf("listing NFSServices: %w", err)
	}
	slices.SortFunc(services, func(a, b v1alpha1.NFSService) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return services, nil
}

// NFSAttachment is a volume of an NFSService on a node.
type NFSAttachment struct {
	Node, PersistentVolume, Driver string
	// Address of the server for the node (VolumeAttachment.status.attachmentMetadata,
	// key csi.AddressKey); empty before the volume is attached.
	Address string
	// Detaching: the VolumeAttachment is being deleted.
	Detaching bool
}

// NFSUse is the use of one NFSService.
type NFSUse struct {
	// Volumes are the PersistentVolumes of the service, sorted.
	Volumes []string
	// Attachments of these volumes, sorted by node and volume.
	Attachments []NFSAttachment
}

// Use returns the use of every NFSService with a PersistentVolume or an attached
// volume. It reads all PersistentVolumes, then all VolumeAttachments.
func (r *NFSReader) Use(ctx context.Context) (map[types.NamespacedName]NFSUse, error) {
	use, serviceOf := map[types.NamespacedName]NFSUse{}, map[string]types.NamespacedName{}
	err := lists.ForEach(ctx, r.objects, &corev1.PersistentVolumeList{}, func(pv *corev1.PersistentVolume) {
		if key, ok := r.serviceOf(pv); ok {
			serviceOf[pv.Name] = key
			u := use[key]
			u.Volumes = append(u.Volumes, pv.Name)
			use[key] = u
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listing PersistentVolumes: %w", err)
	}
	err = lists.ForEach(ctx, r.objects, &storagev1.VolumeAttachmentList{}, func(a *storagev1.VolumeAttachment) {
		driver := a.Spec.Attacher
		if _, served := r.drivers[driver]; !served {
			return
		}
		name := ptr.Deref(a.Spec.Source.PersistentVolumeName, "")
		// The attacher's record counts, even if the PersistentVolume is gone.
		key, err := nfsvolume.ParseService(a.Annotations[nfsvolume.AttachedServiceAnnotation])
		if err != nil {
			var ok bool
			if key, ok = serviceOf[name]; !ok {
				return
			}
		}
		u := use[key]
		u.Attachments = append(u.Attachments, NFSAttachment{
			Node: a.Spec.NodeName, PersistentVolume: name, Driver: driver,
			Address: a.Status.AttachmentMetadata[csi.AddressKey(driver)], Detaching: a.DeletionTimestamp != nil,
		})
		use[key] = u
	})
	if err != nil {
		return nil, fmt.Errorf("listing VolumeAttachments: %w", err)
	}
	for _, u := range use {
		slices.Sort(u.Volumes)
		slices.SortFunc(u.Attachments, func(a, b NFSAttachment) int {
			return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.PersistentVolume, b.PersistentVolume))
		})
	}
	return use, nil
}

func (r *NFSReader) serviceOf(pv *corev1.PersistentVolume) (types.NamespacedName, bool) {
	if pv.Spec.CSI == nil {
		return types.NamespacedName{}, false
	}
	fallback, ok := r.drivers[pv.Spec.CSI.Driver]
	if !ok {
		return types.NamespacedName{}, false
	}
	key, err := nfsvolume.Service(pv.Spec.CSI.VolumeAttributes, fallback)
	return key, err == nil
}

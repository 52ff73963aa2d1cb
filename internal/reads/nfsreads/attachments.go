package nfsreads

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/nfs/volume"
)

// Drivers are the CSI drivers that Fairlead serves, each with its default NFSService; an empty name is no default.
type Drivers map[string]types.NamespacedName

// ErrNoService is returned where a volume names no NFSService, or not as <namespace>/<name>.
var ErrNoService = errors.New("no NFSService")

// Attachment is a VolumeAttachment of a volume of an NFSService.
type Attachment struct {
	Service                types.NamespacedName
	Node, PersistentVolume string
	// Address that the node was given (VolumeAttachment.status.attachmentMetadata,
	// key csi.AddressKey); empty before the volume is attached.
	Address string
	// Detaching: the VolumeAttachment is being deleted.
	Detaching bool
}

// Volumes reads the source of a PersistentVolume.
type Volumes func(name string) (*corev1.CSIPersistentVolumeSource, error)

// VolumesOf reads from the first reader that has the PersistentVolume: a new object may not be cached yet.
func VolumesOf(ctx context.Context, readers ...client.Reader) Volumes {
	return func(name string) (*corev1.CSIPersistentVolumeSource, error) {
		var pv corev1.PersistentVolume
		var err error
		for _, r := range readers {
			if err = r.Get(ctx, client.ObjectKey{Name: name}, &pv); !apierrors.IsNotFound(err) {
				break
			}
		}
		return pv.Spec.CSI, err
	}
}

// Attachment is what a VolumeAttachment means for NFS services; false: nothing.
func (d Drivers) Attachment(va *storagev1.VolumeAttachment, volumes Volumes) (Attachment, bool, error) {
	_, served := d[va.Spec.Attacher]
	// Without its attacher, a finalizer stays after the node has released the volume.
	if Detached(va) || !served && (AddressOf(va) == "" || va.DeletionTimestamp != nil) {
		return Attachment{}, false, nil
	}
	service, err := d.ServiceOf(va, volumes)
	if apierrors.IsNotFound(err) || errors.Is(err, ErrNoService) {
		return Attachment{}, false, nil
	}
	return Attachment{service, va.Spec.NodeName, VolumeName(va), AddressOf(va), va.DeletionTimestamp != nil}, err == nil, err
}

// ServiceOf returns the NFSService of a VolumeAttachment: where the volume is attached, the service that the attacher
// recorded, even if the PersistentVolume is gone; else the service that the volume names.
func (d Drivers) ServiceOf(va *storagev1.VolumeAttachment, volumes Volumes) (types.NamespacedName, error) {
	if service, err := volume.ParseService(va.Annotations[volume.AttachedServiceAnnotation]); err == nil && AddressOf(va) != "" {
		return service, nil
	}
	source, err := SourceOf(va, volumes)
	if err != nil {
		return types.NamespacedName{}, err
	}
	return d.OfVolume(source, VolumeName(va))
}

// OfVolume returns the NFSService that a volume names. name is the PersistentVolume's, for messages.
func (d Drivers) OfVolume(source *corev1.CSIPersistentVolumeSource, name string) (types.NamespacedName, error) {
	driverDefault, served := d[source.Driver]
	if !served {
		return types.NamespacedName{}, fmt.Errorf("driver %s of PersistentVolume %s is not served: %w", source.Driver, name, ErrNoService)
	}
	service, err := volume.Service(source.VolumeAttributes, driverDefault)
	if err != nil {
		return service, fmt.Errorf("PersistentVolume %s: %w: %w", name, ErrNoService, err)
	}
	return service, nil
}

// SourceOf is the source of a VolumeAttachment's volume: of its PersistentVolume, or inline.
func SourceOf(va *storagev1.VolumeAttachment, volumes Volumes) (*corev1.CSIPersistentVolumeSource, error) {
	source := (*corev1.CSIPersistentVolumeSource)(nil)
	if inline := va.Spec.Source.InlineVolumeSpec; inline != nil {
		source = inline.CSI
	} else if name := VolumeName(va); name != "" {
		var err error
		if source, err = volumes(name); err != nil {
			return nil, err
		}
	}
	if source == nil || source.Driver != va.Spec.Attacher {
		return nil, fmt.Errorf("VolumeAttachment %s has no volume of driver %s: %w", va.Name, va.Spec.Attacher, ErrNoService)
	}
	return source, nil
}

// VolumeName is the PersistentVolume of a VolumeAttachment; empty: its volume is inline.
func VolumeName(va *storagev1.VolumeAttachment) string {
	if name := va.Spec.Source.PersistentVolumeName; name != nil {
		return *name
	}
	return ""
}

// AddressOf is the address that a VolumeAttachment has; empty: none yet.
func AddressOf(va *storagev1.VolumeAttachment) string {
	return va.Status.AttachmentMetadata[csi.AddressKey(va.Spec.Attacher)]
}

var unfit = regexp.MustCompile("[^a-zA-Z0-9-]")

// Finalizer of a driver's attacher on VolumeAttachments and PersistentVolumes. It is the sidecar's, so that either can
// take over from the other (external-attacher v4.13.0, pkg/controller/util.go: GetFinalizerName).
func Finalizer(driver string) string {
	name := unfit.ReplaceAllString(driver, "-")
	if strings.HasSuffix(name, "-") {
		name += "X"
	}
	return "external-attacher/" + name
}

// WithoutFinalizer are an object's finalizers without that of the driver's attacher.
func WithoutFinalizer(driver string, finalizers []string) []string {
	return slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return f == Finalizer(driver) })
}

// Detached reports whether a VolumeAttachment is deleted and released by the attacher:
// other finalizers keep the object, and its node has no mount any more.
func Detached(va *storagev1.VolumeAttachment) bool { return va.DeletionTimestamp != nil && !IsHeld(va) }

// IsHeld reports whether a VolumeAttachment has the finalizer of its attacher.
func IsHeld(va *storagev1.VolumeAttachment) bool {
	return slices.Contains(va.Finalizers, Finalizer(va.Spec.Attacher))
}

package pools

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
	"github.com/fairlead-io/fairlead/internal/nfs/volume"
)

// ServiceAnnotation of a VolumeAttachment names its NFSService, as <namespace>/<name>. The annotation stays when the
// PersistentVolume is gone.
const ServiceAnnotation = volume.AttachedServiceAnnotation

// Drivers are the CSI drivers served, each with its default service.
type Drivers map[string]types.NamespacedName

// ErrNoService is returned where a volume names no NFSService, or not as <namespace>/<name>.
var ErrNoService = errors.New("no NFSService")

// ServiceOf returns the NFSService of a volume. name is the PersistentVolume's, for messages.
func (d Drivers) ServiceOf(source *corev1.CSIPersistentVolumeSource, name string) (types.NamespacedName, error) {
	service, err := volume.Service(source.VolumeAttributes, d[source.Driver])
	if err != nil {
		return service, fmt.Errorf("PersistentVolume %s: %w: %w", name, ErrNoService, err)
	}
	return service, nil
}

// Source of a VolumeAttachment's volume: of its PersistentVolume, or inline. The
// reader's error is returned where the PersistentVolume can't be read.
func Source(ctx context.Context, reader client.Reader, va *storagev1.VolumeAttachment) (*corev1.CSIPersistentVolumeSource, string, error) {
	if name := va.Spec.Source.PersistentVolumeName; name != nil {
		var pv corev1.PersistentVolume
		if err := reader.Get(ctx, client.ObjectKey{Name: *name}, &pv); err != nil {
			return nil, *name, err
		}
		if pv.Spec.CSI == nil || pv.Spec.CSI.Driver != va.Spec.Attacher {
			return nil, *name, fmt.Errorf("PersistentVolume %s is not of driver %s: %w", *name, va.Spec.Attacher, ErrNoService)
		}
		return pv.Spec.CSI, *name, nil
	}
	if inline := va.Spec.Source.InlineVolumeSpec; inline != nil && inline.CSI != nil {
		return inline.CSI, "inline", nil
	}
	return nil, "", fmt.Errorf("VolumeAttachment %s names no PersistentVolume: %w", va.Name, ErrNoService)
}

// AddressOf is the address that a VolumeAttachment has; empty: none yet.
func AddressOf(va *storagev1.VolumeAttachment) string {
	return va.Status.AttachmentMetadata[csi.AddressKey(va.Spec.Attacher)]
}

// NodeOf is a node with its zone. A missing node has only a name.
func NodeOf(ctx context.Context, reader client.Reader, name string) assign.Node {
	var node corev1.Node
	if err := reader.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
		return assign.Node{Name: name}
	}
	return assign.Node{Name: name, Zone: node.Labels[corev1.LabelTopologyZone]}
}

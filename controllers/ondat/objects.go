package ondat

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
)

// services with the label of a volume.
type services struct {
	// exists are the IDs of volumes that exist.
	exists map[string]bool
	// ofVolume are the Services by the IDs of their volumes.
	ofVolume map[string][]corev1.Service
	// unread is why the API server did not list the Services that are not in the cache.
	unread error
	// ofOwner are the Services of volumes that exist, by the UIDs of their owners.
	ofOwner map[types.UID][]corev1.Service
}

// services reads the cache. Services of the released manager are not in there: if a
// published volume has none, the API server is asked.
func (r *Reconciler) services(ctx context.Context) (services, error) {
	found := services{exists: map[string]bool{}, ofVolume: map[string][]corev1.Service{}, ofOwner: map[types.UID][]corev1.Service{}}
	var list corev1.ServiceList
	if err := r.Client.List(ctx, &list, client.HasLabels{ondat.VolumeIDLabel}, client.UnsafeDisableDeepCopy); err != nil { // read only
		return found, fmt.Errorf("listing Services: %w", err)
	}
	cached := map[string]bool{}
	for i := range list.Items {
		cached[list.Items[i].Labels[ondat.VolumeIDLabel]] = true
	}
	ask := false
	for _, v := range r.volumes {
		found.exists[v.ID] = true
		ask = ask || v.Labels[ondat.LabelMountEndpoint] != "" && !cached[v.ID]
	}
	if ask {
		var live corev1.ServiceList
		if err := r.Live.List(ctx, &live, client.HasLabels{ondat.VolumeIDLabel}); err != nil {
			found.unread = fmt.Errorf("listing Services: %w", err)
		} else {
			list = live
		}
	}
	for _, s := range list.Items {
		id := s.Labels[ondat.VolumeIDLabel]
		found.ofVolume[id] = append(found.ofVolume[id], s)
		for _, o := range s.OwnerReferences {
			if found.exists[id] {
				found.ofOwner[o.UID] = append(found.ofOwner[o.UID], s)
			}
		}
	}
	return found, nil
}

// ofClaim are the Services that the PVC owns, if there is one.
func (s *services) ofClaim(claim *corev1.PersistentVolumeClaim) []corev1.Service {
	if claim == nil {
		return nil
	}
	return s.ofOwner[claim.UID]
}

// readClaim returns the PVC that the volume names; nil if there is none.
func readClaim(ctx context.Context, reader client.Reader, f ondat.Finding) (*corev1.PersistentVolumeClaim, error) {
	if f.PVC == "" || f.Namespace == "" {
		return nil, nil
	}
	var claim corev1.PersistentVolumeClaim
	err := reader.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: f.PVC}, &claim)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading PersistentVolumeClaim %s/%s: %w", f.Namespace, f.PVC, err)
	}
	return &claim, nil
}

package attach

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// volumes are the PersistentVolumes of a driver with a volumeHandle.
func (a *Assigner) volumes(ctx context.Context, driver, handle string) ([]corev1.PersistentVolume, error) {
	var list corev1.PersistentVolumeList
	if err := a.Cached.List(ctx, &list, client.MatchingFields{VolumeIndex: handleKey(driver, handle)}); err != nil {
		return nil, fmt.Errorf("looking for volume %s: %w", handle, err)
	}
	return list.Items, nil
}

// checkHandle refuses volumes of one handle that name different services. Kubernetes names a VolumeAttachment by handle and
// node, so one VolumeAttachment serves all of them, with one server.
func (a *Assigner) checkHandle(list []corev1.PersistentVolume, service types.NamespacedName, name string) error {
	for i := range list {
		pv := &list[i]
		of, err := Services(a.Drivers).OfVolume(pv.Spec.CSI, pv.Name)
		if err != nil {
			return err
		}
		if of != service {
			return fmt.Errorf("PersistentVolumes %s and %s have volumeHandle %s and name NFSServices %s and %s: give them different handles",
				name, pv.Name, pv.Spec.CSI.VolumeHandle, service, of)
		}
	}
	return nil
}

package standin

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox/changes"
	"github.com/fairlead-io/fairlead/internal/longhorn"
)

// ProvisionClaims creates a volume for each claim of a StorageClass of Longhorn's, until the context ends, as
// its CSI provisioner does. Volumes of deleted claims stay.
func (l Longhorn) ProvisionClaims(ctx context.Context) {
	changes.Follow(ctx, l.client, func() {
		if err := l.provisionClaims(ctx); err != nil && ctx.Err() == nil {
			fmt.Fprintln(l.out, "provisioning:", err)
		}
	}, []client.ObjectList{&corev1.PersistentVolumeClaimList{}})
}

func (l Longhorn) provisionClaims(ctx context.Context) error {
	var claims corev1.PersistentVolumeClaimList
	if err := l.client.List(ctx, &claims); err != nil {
		return fmt.Errorf("listing claims: %w", err)
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if claim.Spec.VolumeName != "" || claim.DeletionTimestamp != nil || claim.Spec.StorageClassName == nil || *claim.Spec.StorageClassName == "" {
			continue
		}
		var class storagev1.StorageClass
		if err := l.client.Get(ctx, client.ObjectKey{Name: *claim.Spec.StorageClassName}, &class); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading StorageClass %s: %w", *claim.Spec.StorageClassName, err)
		}
		if class.Provisioner != longhorn.DefaultNames().Driver {
			continue
		}
		shared := slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteMany)
		if err := l.CreateVolume(ctx, Volume{Name: "pvc-" + string(claim.UID)[:8], Shared: shared, For: claim}); err != nil {
			return err
		}
	}
	return nil
}

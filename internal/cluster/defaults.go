package cluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/storage/longhorn"
)

// DefaultSettings are the values that the storage system writes into its settings at each start, by name. Without the
// ConfigMap, or the right to read it, there are none: they are for warnings only.
func (r *Reader) DefaultSettings(ctx context.Context) map[string]string {
	var given corev1.ConfigMap
	if err := r.objects.Get(ctx, client.ObjectKey{Namespace: r.profile.Namespace, Name: r.profile.DefaultSettings}, &given); err != nil {
		return nil
	}
	return longhorn.ParseDefaultSettings(given.Data[longhorn.DefaultSettingsKey])
}

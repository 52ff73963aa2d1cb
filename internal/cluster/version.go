package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
)

// versionSetting is the read-only setting in which Longhorn writes its version.
const versionSetting = "current-longhorn-version"

// Version of the storage system, as it says itself; "" where it does not.
func (r *Reader) Version(ctx context.Context) (string, error) {
	var s longhorn.Setting
	err := r.objects.Get(ctx, client.ObjectKey{Namespace: r.profile.Namespace, Name: versionSetting}, &s)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the version of the storage system: %w", err)
	}
	return s.Value, nil
}

package fencingreads

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/internal/fence"
)

// Volume reads a PersistentVolume; nil if there is none.
func (r *HolderReader) Volume(ctx context.Context, name string) (*fence.Volume, error) {
	var pv corev1.PersistentVolume
	if there, err := get(ctx, r.live, name, &pv); err != nil || !there {
		return nil, err
	}
	v := FenceVolume(&pv)
	return &v, nil
}

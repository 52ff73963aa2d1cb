package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/fence"
)

// Policy of fencing: the configuration, and the storage systems' own switches as they are now.
func (r *FenceReader) Policy(ctx context.Context) (fence.Policy, error) {
	off := map[string]bool{}
	for _, p := range r.profiles() {
		is, err := switchedOff(ctx, r.objects, p.Storage())
		if err != nil {
			return fence.Policy{}, err
		}
		off[p.Name] = is
	}
	return r.config.Policy(func(profile string) bool { return off[profile] }), nil
}

// switchedOff reads ROOK_WATCH_FOR_NODE_FAILURE, which was on unless it was
// "false" (rook/rook: pkg/operator/ceph/controller, WatchForNodeFailure). Without
// the ConfigMap or the key it is on.
func switchedOff(ctx context.Context, from client.Reader, s fence.Storage) (bool, error) {
	if s.Switch.ConfigMap == "" {
		return false, nil
	}
	var m corev1.ConfigMap
	err := from.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.Switch.ConfigMap}, &m)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the switch of %s: %w", s.Name, err)
	}
	return s.Switch.Off(m.Data), nil
}

package tainting

import (
	"context"

	"k8s.io/utils/clock"

	"github.com/fairlead-io/fairlead/cluster"
	"github.com/fairlead-io/fairlead/fence"
)

// Asks is a Reconciler's Unfenceable by all that the fencing controller itself goes
// by, such as the servers' addresses and other NetworkFences. live is a reader of the
// API server.
func Asks(live *cluster.FenceReader, clock clock.PassiveClock) func(context.Context, string) (*fence.Refusal, error) {
	return func(ctx context.Context, node string) (*fence.Refusal, error) {
		view, err := live.Facts(ctx, node, clock.Now())
		if err != nil {
			return nil, err
		}
		if view.NoCSIAddons {
			return &fence.Refusal{Reason: fence.ReasonNoCSIAddons, Message: "tainted, node " + node + " would lose its pods, and its volumes would be held: the cluster has no NetworkFences, so nobody can be asked to fence; install csi-addons"}, nil
		}
		return fence.Unfenceable(view.Facts), nil
	}
}

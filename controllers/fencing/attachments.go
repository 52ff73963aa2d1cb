package fencing

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/cluster/fencing"
)

// attachments is the source of events of VolumeAttachments. Workers begin once the holdings are synced.
type attachments struct{ held *fencing.Holdings }

// Start implements source.Source.
func (a attachments) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	a.held.OnAttachment(func(node string) {
		for _, request := range kit.Request(node) {
			queue.Add(request)
		}
	})
	return nil
}

// WaitForSync implements source.SyncingSource.
func (a attachments) WaitForSync(ctx context.Context) error {
	return wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(context.Context) (bool, error) { return a.held.Synced(), nil })
}

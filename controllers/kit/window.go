package kit

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A window is nine times as long as the last look at the cache took. Looks of up to 110 ms
// thus take about a tenth of the time; longer looks take more, since a window is at most a
// second. Live looks do not count: each is for a step that is due.
const (
	least = 50 * time.Millisecond
	most  = time.Second
	share = 9
)

// Window gathers a burst of events into one request, for a controller that looks at everything.
type Window struct {
	// lastLook is how long the last look took, in nanoseconds.
	lastLook atomic.Int64
}

// Looked notes the end of a look that began at a time.
func (w *Window) Looked(began time.Time) { w.lastLook.Store(int64(time.Since(began))) }

func (w *Window) length() time.Duration {
	return min(max(share*time.Duration(w.lastLook.Load()), least), most)
}

// Handler makes one request, at the end of the window that the first event begins.
func (w *Window) Handler(request reconcile.Request) handler.EventHandler {
	soon := func(queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		queue.AddAfter(request, w.length())
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			soon(queue)
		},
		UpdateFunc: func(_ context.Context, _ event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			soon(queue)
		},
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			soon(queue)
		},
	}
}

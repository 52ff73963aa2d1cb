package kit

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestWindowGrowsWithTheLastLook(t *testing.T) {
	for look, want := range map[time.Duration]time.Duration{
		0: least, time.Millisecond: least, 20 * time.Millisecond: 180 * time.Millisecond, time.Minute: most,
	} {
		var w Window
		w.lastLook.Store(int64(look))
		must.Equal(t, w.length(), want, "after a look of %s", look)
	}
}

func TestBurstOfEventsMakesOneRequest(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Unix(0, 0))
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request](),
		workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Clock: clock})
	defer queue.ShutDown()
	request := reconcile.Request{NamespacedName: types.NamespacedName{Name: "everything"}}
	var w Window
	events := w.Handler(request)
	events.Create(t.Context(), event.CreateEvent{}, queue)
	clock.Step(least - time.Millisecond)
	events.Update(t.Context(), event.UpdateEvent{}, queue)
	events.Delete(t.Context(), event.DeleteEvent{}, queue)
	if got := queue.Len(); got != 0 {
		t.Fatalf("%d requests before the window ends", got)
	}
	clock.Step(time.Millisecond)
	got, _ := queue.Get() // blocks until the window ends
	queue.Done(got)
	clock.Step(most)
	must.True(t, got == request && queue.Len() == 0, "got %v and %d more", got, queue.Len())
}

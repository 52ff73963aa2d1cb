package standin

import (
	"context"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// changes tells that something of the lists has changed, not what: whoever hears
// it looks at everything. The function returns once nothing is watched any more,
// after the context has ended.
func (l Longhorn) changes(ctx context.Context, lists ...client.ObjectList) (<-chan struct{}, func()) {
	changed := make(chan struct{}, 1)
	var watches sync.WaitGroup
	for _, list := range lists {
		watches.Go(func() {
			for ctx.Err() == nil {
				l.watch(ctx, list, changed)
				select {
				case <-ctx.Done():
				case <-time.After(100 * time.Millisecond): // the API server ends a watch now and then
				}
			}
		})
	}
	return changed, watches.Wait
}

func (l Longhorn) watch(ctx context.Context, list client.ObjectList, changed chan<- struct{}) {
	w, err := l.client.Watch(ctx, list, client.InNamespace(l.namespace))
	if err != nil {
		return
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-w.ResultChan():
			if !open {
				return
			}
			select {
			case changed <- struct{}{}:
			default: // it is known already
			}
		}
	}
}

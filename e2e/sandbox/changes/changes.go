// Package changes wakes simulated controllers when objects change, so that a
// cluster at rest costs little.
package changes

import (
	"context"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// rounds are at most ten a second: changes mostly come several at a time.
	pause = 100 * time.Millisecond
	// atLeast is for what is not watched, such as a process, and for what has failed.
	atLeast = time.Second
)

// Follow calls round at once, whenever an object of the lists has changed, and once a second, until the context ends.
func Follow(ctx context.Context, c client.WithWatch, round func(), lists []client.ObjectList, options ...client.ListOption) {
	changed, ended := Watch(ctx, c, lists, options...)
	defer ended()
	for ctx.Err() == nil {
		round()
		select {
		case <-ctx.Done():
		case <-changed:
			time.Sleep(pause)
		case <-time.After(atLeast):
		}
	}
}

// Watch reports that an object of the lists has changed, not which: the receiver looks at everything.
// ended waits for the watches, which end with the context.
func Watch(ctx context.Context, c client.WithWatch, lists []client.ObjectList, options ...client.ListOption) (changed <-chan struct{}, ended func()) {
	changes := make(chan struct{}, 1)
	var watches sync.WaitGroup
	for _, list := range lists {
		watches.Go(func() {
			for ctx.Err() == nil {
				watch(ctx, c, list, changes, options)
				select {
				case <-ctx.Done():
				case <-time.After(pause): // the API server ends a watch now and then
				}
			}
		})
	}
	return changes, watches.Wait
}

func watch(ctx context.Context, c client.WithWatch, list client.ObjectList, changed chan<- struct{}, options []client.ListOption) {
	w, err := c.Watch(ctx, list, options...)
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

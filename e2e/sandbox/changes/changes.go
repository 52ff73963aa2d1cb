// Package changes wakes simulated controllers when objects change, so that a
// cluster at rest costs little.
package changes

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"
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
	changed := make(chan struct{}, 1)
	var watches sync.WaitGroup
	defer watches.Wait()
	for _, list := range lists {
		watches.Go(func() {
			Each(ctx, c, list, func(watch.Event) {
				select {
				case changed <- struct{}{}:
				default: // it is known already
				}
			}, options...)
		})
	}
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

// Each hands on the events of a list, the objects that there are first, until the context ends.
func Each(ctx context.Context, c client.WithWatch, list client.ObjectList, do func(watch.Event), options ...client.ListOption) {
	last := "" // error that was printed
	for ctx.Err() == nil {
		w, err := c.Watch(ctx, list, options...)
		if err == nil {
			for event := range w.ResultChan() {
				do(event)
			}
			w.Stop()
		} else if ctx.Err() == nil && err.Error() != last {
			last = err.Error()
			fmt.Fprintf(os.Stderr, "watching %T: %v\n", list, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause): // the API server ends a watch now and then
		}
	}
}

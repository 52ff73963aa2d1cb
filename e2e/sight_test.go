package e2e

import (
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sight is an event of a bare watch, and when it came.
type sight struct {
	watch.Event
	at time.Time
}

// sights shows what becomes of the storage system's objects of some kinds, as it comes.
func (c *cluster) sights(kinds ...client.ObjectList) <-chan sight {
	c.t.Helper()
	seen := make(chan sight, 10000)
	for _, list := range kinds {
		w, err := c.Client.Watch(c.t.Context(), list, client.InNamespace(namespace))
		c.must(err)
		c.t.Cleanup(w.Stop)
		go func() {
			for event := range w.ResultChan() {
				seen <- sight{event, time.Now()}
			}
		}()
	}
	time.Sleep(200 * time.Millisecond) // all of them are under way
	return seen
}

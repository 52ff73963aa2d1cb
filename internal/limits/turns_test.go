package limits

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// Regression: one source with many callers kept all others waiting beyond their timeouts.
func TestFloodOfOneSourceDelaysAnotherByOneTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(2)
		flood, other := WithSource(t.Context(), "192.0.2.1"), WithSource(t.Context(), "192.0.2.2")
		done := make(chan string, 101)
		for range 100 {
			go func() {
				must.Do(t, turns.Acquire(flood))
				done <- "flood"
			}()
		}
		synctest.Wait()
		go func() {
			must.Do(t, turns.Acquire(other))
			done <- "other"
		}()
		synctest.Wait()
		var order []string
		for range 4 {
			turns.Release()
			synctest.Wait()
		}
		for len(done) > 0 {
			order = append(order, <-done)
		}
		must.Equal(t, order, []string{"flood", "flood", "flood", "other", "flood", "flood"})
		for range 97 {
			turns.Release()
			synctest.Wait()
		}
		must.Equal(t, len(done), 95, "callers left")
	})
}

func TestTurnsAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(1)
		must.Do(t, turns.Acquire(t.Context()))
		gone, cancel := context.WithCancel(WithSource(t.Context(), "a"))
		left := make(chan error)
		go func() { left <- turns.Acquire(gone) }()
		synctest.Wait()
		cancel()
		must.True(t, errors.Is(<-left, context.Canceled), "no error")
		must.True(t, len(turns.waiting) == 0 && len(turns.sources) == 0, "still known: %v, %v", turns.waiting, turns.sources)
		must.True(t, errors.Is(turns.Acquire(gone), context.Canceled), "no error")
		turns.Release()
		must.Equal(t, turns.free, 1)
	})
}

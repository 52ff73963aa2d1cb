package lists_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/fairlead-io/fairlead/internal/reads/lists"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// A caller that comes during a read must not get its result: the read may lack the caller's last write.
func TestSharedReadBeginsAfterItsCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int32
		proceed := make(chan struct{})
		shared := lists.NewShared(func(context.Context) (int32, error) {
			n := reads.Add(1)
			<-proceed
			return n, nil
		})
		got := make(chan int32, 300)
		ask := func(n int) {
			for range n {
				go func() {
					value, err := shared.Get(t.Context())
					must.Check(t, err == nil, "got %v", err)
					got <- value
				}()
			}
			synctest.Wait()
		}
		want := func(n int, value int32) {
			t.Helper()
			proceed <- struct{}{}
			synctest.Wait()
			must.Equal(t, len(got), n, "callers of read %d", value)
			for range n {
				must.Equal(t, <-got, value)
			}
		}
		ask(1)
		ask(200)
		want(1, 1)
		ask(1) // the second read has begun
		want(200, 2)
		want(1, 3)
		must.Equal(t, reads.Load(), 3, "reads")
		ask(1) // after a rest
		want(1, 4)
	})
}

func TestSharedReadFails(t *testing.T) {
	failed := errors.New("the API server is away")
	shared := lists.NewShared(func(context.Context) (int, error) { return 0, failed })
	_, err := shared.Get(t.Context())
	must.True(t, errors.Is(err, failed), "got %v", err)

	panics := lists.NewShared(func(context.Context) (int, error) { panic("nil map") })
	for range 2 {
		func() {
			defer func() {
				text, _ := recover().(string)
				must.True(t, strings.HasPrefix(text, "nil map\n"), "got %q", text)
			}()
			_, _ = panics.Get(t.Context())
		}()
	}
}

func TestSharedReadOutlivesACallerThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		proceed := make(chan struct{})
		shared := lists.NewShared(func(ctx context.Context) (int, error) {
			<-proceed
			return 1, ctx.Err()
		})
		gone, cancel := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() { _, err := shared.Get(gone); left <- err }()
		synctest.Wait()
		cancel()
		must.True(t, errors.Is(<-left, context.Canceled), "not canceled")
		close(proceed)
		synctest.Wait()
		_, err := shared.Get(t.Context())
		must.Do(t, err)
	})
}

package limits

import (
	"context"
	"slices"
	"sync"
)

// Turns lets few callers work at a time. The sources that wait take turns, so that a source with many callers
// delays another source by one turn, not by all of its callers.
type Turns struct {
	mu   sync.Mutex
	free int
	// waiting are the callers of each source, first come first. sources with callers are in the order of their turns.
	waiting map[string][]chan struct{}
	sources []string
}

// NewTurns lets n callers work at a time.
func NewTurns(n int) *Turns { return &Turns{free: n, waiting: map[string][]chan struct{}{}} }

type sourceKey struct{}

// WithSource names the source of the work of a context.
func WithSource(ctx context.Context, source string) context.Context {
	return context.WithValue(ctx, sourceKey{}, source)
}

// SourceOf is the source of the work of a context; "" if none is named.
func SourceOf(ctx context.Context) string {
	source, _ := ctx.Value(sourceKey{}).(string)
	return source
}

// Acquire waits for a turn of the context's source, until the context ends.
func (t *Turns) Acquire(ctx context.Context) error {
	source := SourceOf(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	if len(t.waiting[source]) == 0 {
		t.sources = append(t.sources, source)
	}
	t.waiting[source] = append(t.waiting[source], turn)
	t.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		t.leave(source, turn)
		return ctx.Err()
	}
}

// leave gives up a caller's place, or its turn if it got one meanwhile.
func (t *Turns) leave(source string, turn chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.waiting[source], turn)
	if i < 0 {
		t.pass()
		return
	}
	t.waiting[source] = slices.Delete(t.waiting[source], i, i+1)
	if len(t.waiting[source]) == 0 {
		delete(t.waiting, source) // callers choose their addresses: keep none
		t.sources = slices.DeleteFunc(t.sources, func(s string) bool { return s == source })
	}
}

// Release ends a turn.
func (t *Turns) Release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pass()
}

// pass gives the turn to the first caller of the next source.
func (t *Turns) pass() {
	if len(t.sources) == 0 {
		t.free++
		return
	}
	source := t.sources[0]
	t.sources = t.sources[1:]
	callers := t.waiting[source]
	close(callers[0])
	if t.waiting[source] = callers[1:]; len(callers) > 1 {
		t.sources = append(t.sources, source)
	} else {
		delete(t.waiting, source)
	}
}

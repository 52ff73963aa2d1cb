package ui

import (
	"context"
	"sync"
	"time"
)

const (
	// readTimeout ends a reading of a cluster that does not answer.
	readTimeout = 15 * time.Second
	// freshFor is how old a reading may be that a view shows without waiting for the next one.
	freshFor = 5 * interval
)

// watch keeps the last reading. It reads only when a view or an open page asks, one reading at a
// time, and not more often than the interval.
type watch struct {
	source   source
	interval time.Duration
	now      func() time.Time

	mu   sync.Mutex
	last state
	// ended is when the last reading ended, well or not.
	ended time.Time
	// underway is closed at the end of the present reading; nil if there is none.
	underway chan struct{}
}

// state is the last good reading, and since when the cluster can't be read.
type state struct {
	reading *reading
	err     error
	since   time.Time
}

func newWatch(s source) *watch { return &watch{source: s, interval: interval, now: time.Now} }

// refresh returns the state after the present reading. A reading starts if the last one is old.
func (w *watch) refresh(ctx context.Context) state {
	if underway := w.start(ctx); underway != nil {
		select {
		case <-underway:
		case <-ctx.Done():
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// look returns the state at once if it is fresh; otherwise it waits for a reading.
func (w *watch) look(ctx context.Context) state {
	w.mu.Lock()
	last, age := w.last, w.now().Sub(w.ended)
	w.mu.Unlock()
	if !w.knows(last) || age > freshFor {
		return w.refresh(ctx)
	}
	w.start(ctx)
	return last
}

func (w *watch) knows(s state) bool { return s.reading != nil || s.err != nil }

// start begins a reading if one is due, and returns the end of the present reading.
func (w *watch) start(ctx context.Context) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.underway == nil && (w.ended.IsZero() || w.now().Sub(w.ended) >= w.interval) {
		w.underway = make(chan struct{})
		go w.read(context.WithoutCancel(ctx)) // others wait for this reading, too
	}
	return w.underway
}

func (w *watch) read(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	r, err := w.source.read(ctx, w.now())
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		w.last = state{reading: r}
	case w.last.err == nil:
		w.last.err, w.last.since = err, w.now()
	default:
		w.last.err = err
	}
	w.ended = w.now()
	close(w.underway)
	w.underway = nil
}

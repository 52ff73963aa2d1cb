package lists

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// Shared reads a value for many callers at once. Each caller gets the result of a read that begins after the call, together with
// all callers that came since the read before began. So there is one read at a time of each Shared, however many callers come, and none decides
// on what was read before it asked.
type Shared[T any] struct {
	read func(context.Context) (T, error)

	mu      sync.Mutex
	reading bool
	next    *sharedRead[T]
}

type sharedRead[T any] struct {
	done     chan struct{}
	value    T
	err      error
	panicked any
}

// longestRead is the longest timeout that a webhook may have.
const longestRead = 30 * time.Second

// NewShared shares the results of read, which must be read-only for its callers.
func NewShared[T any](read func(context.Context) (T, error)) *Shared[T] {
	return &Shared[T]{read: read}
}

// Get waits for the next read, until the context ends. It panics if the read did.
func (s *Shared[T]) Get(ctx context.Context) (T, error) {
	r := s.join()
	select {
	case <-r.done:
		if r.panicked != nil {
			panic(r.panicked)
		}
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("waiting for a read of the cluster: %w", ctx.Err())
	}
}

func (s *Shared[T]) join() *sharedRead[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = &sharedRead[T]{done: make(chan struct{})}
		if !s.reading {
			s.reading = true
			go s.readAll()
		}
	}
	return s.next
}

// readAll reads until no caller waits.
func (s *Shared[T]) readAll() {
	for r := s.begin(); r != nil; r = s.begin() {
		ctx, cancel := context.WithTimeout(context.Background(), longestRead)
		s.into(ctx, r)
		cancel()
		close(r.done)
	}
}

// into keeps a panic for the callers: here it would end the process.
func (s *Shared[T]) into(ctx context.Context, r *sharedRead[T]) {
	defer func() {
		if p := recover(); p != nil {
			r.panicked = fmt.Sprintf("%v\n%s", p, debug.Stack())
		}
	}()
	r.value, r.err = s.read(ctx)
}

func (s *Shared[T]) begin() *sharedRead[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.next
	s.next, s.reading = nil, r != nil
	return r
}

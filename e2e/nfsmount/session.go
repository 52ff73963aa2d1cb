package main

import (
	"bytes"
	"context"
	"errors"
	"log"
	"sync"
	"syscall"
	"time"
)

// Statuses of NFSv4.1 that have a meaning here (RFC 8881, section 15).
const (
	statusExpired      = 10011
	statusGrace        = 10013
	statusStaleClient  = 10022
	statusStaleState   = 10023
	statusOldState     = 10024
	statusBadState     = 10025
	statusAdminRevoked = 10047
	statusBadSession   = 10052
	statusBadSlot      = 10053
	statusNotBound     = 10055
	statusMisordered   = 10063
	statusUncached     = 10068
	statusFalseRetry   = 10076
	statusDeadSession  = 10078
	statusDelegRevoked = 10087
)

// Flags of EXCHANGE_ID, CREATE_SESSION and OPEN, and claims of OPEN.
const (
	confirmed        = 0x80000000
	notPNFS          = 0x00010000
	noBackChannel    = 0
	wantNoDelegation = 0x0400
	claimName        = 0
	claimPrevious    = 1
	claimHandle      = 4
)

// Limits of a session.
const (
	maxSlots = 16
	maxBytes = 1<<20 + 4096 // of a request, and of a response
	overhead = 2048         // of a READ or WRITE
)

// anonymous is the state of no open.
const anonymous = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

// v4 is a share by NFSv4.1. A lost session, or a server without memory of this client, is
// replaced; callers wait meanwhile.
type v4 struct {
	rpc   *transport
	owner string
	// verifier changes when the client forgets its files.
	verifier [8]byte
	// soft is the time after which a call fails with softError; 0 is never.
	soft      time.Duration
	softError syscall.Errno
	lease     time.Duration
	ended     chan struct{}

	mu      sync.Mutex
	session *session
	ready   chan struct{} // closed while there is a session
	last    *session      // the session before, for its client
	files   map[*file]bool
}

// session at a server, which does one request a slot at a time.
type session struct {
	id                []byte
	client            uint64
	sequence          uint32 // of the client's next session
	slots             chan *slot
	lost              chan struct{}
	maxRead, maxWrite int
}

type slot struct{ number, sequence uint32 }

// file that is open at the server.
type file struct {
	handle handle
	owner  string

	opening sync.Mutex
	mu      sync.Mutex
	state   string
}

func (f *file) setState(state []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state = string(state)
}

func (f *file) stateID() string {
	if f == nil {
		return anonymous
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

// operations of a COMPOUND.
type operations struct {
	writer
	count uint32
}

func (o *operations) add(code uint32) *operations {
	o.count++
	o.u32(code)
	return o
}

func (o *operations) handle(h handle) { o.add(opPutFH).bytes(h) }

// compound encodes a request.
func compound(ctx context.Context, build func(*operations)) []byte {
	o := &operations{}
	build(o)
	w := header(ctx, nfsProgram, 4, 1)
	w.bytes(nil) // tag
	w.u32(1)     // minor version
	w.u32(o.count)
	return append(w.b, o.b...)
}

// result reads the header of a response; the results follow.
func result(answer []byte, err error) (*reader, uint32, error) {
	if err != nil {
		return nil, 0, err
	}
	r, err := body(answer)
	if err != nil {
		return nil, 0, err
	}
	status := r.u32()
	r.bytes() // tag
	r.u32()   // count
	return r, status, r.err
}

// skip leaves out results without a content.
func (r *reader) skip(results int) *reader {
	r.take(8 * results)
	return r
}

// do repeats operations until the server has done or refused them. If the lease ran out while the server hung, the next session
// has a new one. The server keeps the response (keep) of operations that must not be done twice.
func (c *v4) do(ctx context.Context, keep bool, build func(*operations)) (*reader, syscall.Errno) {
	for waited := time.Duration(0); ; waited = pause(context.WithoutCancel(ctx), waited) {
		if r, e := c.doByState(ctx, keep, build); e != errState {
			return r, e
		}
	}
}

// doByState returns errState if the server does not know the state of an open file, or of this client.
func (c *v4) doByState(ctx context.Context, keep bool, build func(*operations)) (*reader, syscall.Errno) {
	ctx, cancel := killable(ctx)
	defer cancel()
	for waited := time.Duration(0); ; {
		r, status, err := c.attempt(ctx, keep, build)
		switch {
		case ctx.Err() != nil:
			return nil, syscall.EINTR
		case err == context.DeadlineExceeded:
			return nil, c.softError
		case err != nil:
			return nil, syscall.EIO
		}
		switch status {
		case 0:
			return r, 0
		case statusDelay, statusGrace, statusUncached:
			waited = pause(ctx, waited)
		case statusBadSession:
			// the next attempt waits for another session
		case statusExpired, statusStaleState, statusOldState, statusBadState, statusAdminRevoked, statusDelegRevoked:
			return nil, errState
		default:
			if status >= 70 {
				log.Println("the server answers", status)
			}
			return nil, errno(status)
		}
	}
}

// errState is for a state that the server does not know. Callers of the share never get errState.
const errState = syscall.EBADFD

// withState repeats operations on an open file, which is opened again if the server has forgotten it.
func (c *v4) withState(ctx context.Context, f *file, keep bool, build func(o *operations, state string)) (*reader, syscall.Errno) {
	for {
		var state string
		r, e := c.doByState(ctx, keep, func(o *operations) {
			state = f.stateID()
			build(o, state)
		})
		if e != errState {
			return r, e
		}
		if f == nil {
			return nil, syscall.EIO
		}
		log.Println("the server does not know the open file", f.owner)
		if e := c.reopen(ctx, f, state); e != 0 {
			return nil, e
		}
	}
}

func (c *v4) attempt(ctx context.Context, keep bool, build func(*operations)) (*reader, uint32, error) {
	if c.soft > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.soft)
		defer cancel()
	}
	for {
		c.mu.Lock()
		s, ready := c.session, c.ready
		c.mu.Unlock()
		if s != nil {
			return c.request(ctx, s, keep, build)
		}
		select {
		case <-ready:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
}

// request does operations once. Its slot is used again when the server has answered, also if
// no caller waits for the answer any more.
func (c *v4) request(ctx context.Context, s *session, keep bool, build func(*operations)) (*reader, uint32, error) {
	var slot *slot
	select {
	case slot = <-s.slots:
	case <-s.lost:
		return nil, statusBadSession, nil
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	message := compound(ctx, func(o *operations) {
		o.add(opSequence).b = append(o.b, s.id...)
		o.u32(slot.sequence)
		o.u32(slot.number)
		o.u32(maxSlots - 1)
		if keep {
			o.u32(1)
		} else {
			o.u32(0)
		}
		build(o)
	})
	type answer struct {
		r      *reader
		status uint32
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		r, status, err := result(c.rpc.call(context.WithoutCancel(ctx), message))
		if err == nil {
			r.u32()
			sequence := r.u32()
			switch sequence {
			case 0:
				slot.sequence++
				r.take(36)
			case statusUncached:
				slot.sequence++
			case statusBadSession, statusDeadSession, statusStaleClient, statusMisordered, statusBadSlot, statusNotBound, statusFalseRetry:
				status = statusBadSession
			}
			if status == statusStaleClient {
				status = statusBadSession
			}
			if status == statusBadSession {
				c.lose(s, sequence)
			}
		}
		answered <- answer{r, status, err}
		s.slots <- slot
	}()
	select {
	case a := <-answered:
		return a.r, a.status, a.err
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
}

// raw does one operation outside of a session.
func (c *v4) raw(ctx context.Context, build func(*operations)) (*reader, uint32, error) {
	r, status, err := result(c.rpc.call(ctx, compound(ctx, build)))
	if err == nil {
		r.skip(1)
	}
	return r, status, err
}

func openArguments(o *operations, client uint64, owner string) {
	o.add(opOpen).u32(0)
	o.u32(3 | wantNoDelegation) // read and write
	o.u32(0)                    // deny nothing
	o.u64(client)
	o.bytes([]byte(owner))
}

// readState reads the answer of an OPEN and returns its state.
func readState(r *reader) []byte {
	r.take(8)
	state := bytes.Clone(r.take(16))
	r.take(24) // change of the folder, flags
	readBitmap(r)
	switch r.u32() { // delegation
	case 0:
	case 3: // none, and why
		if why := r.u32(); why == 1 || why == 2 {
			r.u32()
		}
	default:
		r.err = errDelegation
	}
	return state
}

var errDelegation = errors.New("the server delegates a file, against the client's wish")

func readBitmap(r *reader) []uint32 {
	words := make([]uint32, min(r.u32(), 8))
	for i := range words {
		words[i] = r.u32()
	}
	return words
}

func bitmap(w *writer, bits ...int) {
	var words [3]uint32
	for _, bit := range bits {
		words[bit/32] |= 1 << (bit % 32)
	}
	w.u32(3)
	for _, word := range words {
		w.u32(word)
	}
}

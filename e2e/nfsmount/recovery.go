package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"time"
)

// leaveTimeout is for the answer of a server that may be gone.
const leaveTimeout = 2 * time.Second

// lose replaces a session, once.
func (c *v4) lose(s *session, status uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session != s {
		return
	}
	log.Println("the session is lost:", status)
	close(s.lost)
	c.session, c.ready = nil, make(chan struct{})
	go func() {
		for waited := time.Duration(0); ; waited = pause(context.Background(), waited) {
			if err := c.establish(context.Background()); err == nil {
				return
			} else {
				log.Println("making a session:", err)
			}
		}
	}()
}

// establish makes a session, and opens the files again if the server has forgotten this client.
func (c *v4) establish(ctx context.Context) error {
	r, status, err := c.raw(ctx, func(o *operations) {
		o.add(opExchangeID).b = append(o.b, c.verifier[:]...)
		o.bytes([]byte(c.owner))
		o.u32(notPNFS)
		o.u32(0) // no protection of state
		o.u32(0) // no description of the program
	})
	if err != nil || status != 0 {
		return fmt.Errorf("EXCHANGE_ID: %d, %w", status, err)
	}
	s := &session{client: r.u64(), sequence: r.u32(), lost: make(chan struct{}), slots: make(chan *slot, maxSlots)}
	known := r.u32()&confirmed != 0
	c.mu.Lock()
	if known && c.last != nil && c.last.client == s.client {
		s.sequence = c.last.sequence
	}
	c.mu.Unlock()
	if err := c.createSession(ctx, s); err != nil {
		return err
	}
	c.mu.Lock()
	c.last = s
	c.mu.Unlock()
	if !known {
		c.reclaim(ctx, s)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session = s
	close(c.ready)
	log.Printf("session %x of client %x, known before: %v", s.id, s.client, known)
	return nil
}

func (c *v4) createSession(ctx context.Context, s *session) error {
	channel := func(o *operations) {
		for _, v := range []uint32{0, maxBytes, maxBytes, 8 << 10, 16, maxSlots, 0} {
			o.u32(v)
		}
	}
	r, status, err := c.raw(ctx, func(o *operations) {
		o.add(opCreateSession).u64(s.client)
		o.u32(s.sequence)
		o.u32(noBackChannel)
		channel(o)
		channel(o)
		o.u32(0x40000000) // program of the callbacks that are not wanted
		o.u32(1)
		o.u32(0) // AUTH_NONE
	})
	if err != nil || status != 0 {
		return fmt.Errorf("CREATE_SESSION: %d, %w", status, err)
	}
	s.id = bytes.Clone(r.take(16))
	s.sequence = r.u32() + 1
	r.u32() // flags
	r.u32() // header's padding
	s.maxWrite = min(int(r.u32())-overhead, 1<<20)
	s.maxRead = min(int(r.u32())-overhead, 1<<20)
	r.u32()
	r.u32()
	slots := min(r.u32(), maxSlots)
	if r.err != nil || slots == 0 || s.maxRead < 4096 || s.maxWrite < 4096 {
		return fmt.Errorf("CREATE_SESSION: the server allows %d slots, %d bytes to write and %d to read (%v)", slots, s.maxWrite, s.maxRead, r.err)
	}
	for i := range slots {
		s.slots <- &slot{number: i, sequence: 1}
	}
	return nil
}

// reclaim opens files again at a server that has forgotten them. A file that cannot be reclaimed
// is opened when it is used.
func (c *v4) reclaim(ctx context.Context, s *session) {
	c.mu.Lock()
	files := make([]*file, 0, len(c.files))
	for f := range c.files {
		files = append(files, f)
	}
	c.mu.Unlock()
	repeat := func(build func(*operations)) (r *reader, status uint32, err error) {
		for waited := time.Duration(0); ; waited = pause(ctx, waited) {
			r, status, err = c.request(ctx, s, true, build)
			if err != nil || status != statusDelay && status != statusGrace {
				return r, status, err
			}
		}
	}
	reclaimed := 0
	for _, f := range files {
		r, status, err := repeat(func(o *operations) {
			o.handle(f.handle)
			openArguments(o, s.client, f.owner)
			o.u32(0) // no creation
			o.u32(claimPrevious)
			o.u32(0) // no delegation
		})
		if err == nil && status == 0 {
			f.setState(readState(r.skip(1)))
			reclaimed++
		} else {
			log.Println("reclaiming", f.owner, ":", status, err)
		}
	}
	_, status, err := repeat(func(o *operations) { o.add(opReclaimComplete).u32(0) })
	log.Println("reclaimed", reclaimed, "of", len(files), "files:", status, err)
}

func (c *v4) renew() {
	for {
		select {
		case <-c.ended:
			return
		case <-time.After(c.lease / 3):
			c.do(context.Background(), false, func(*operations) {})
		}
	}
}

// leave forgets the client at the server, if it answers.
func (c *v4) leave() {
	close(c.ended)
	c.mu.Lock()
	s := c.session
	c.mu.Unlock()
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	c.raw(ctx, func(o *operations) { o.add(opDestroySession).b = append(o.b, s.id...) })
	c.raw(ctx, func(o *operations) { o.add(opDestroyClientID).u64(s.client) })
}

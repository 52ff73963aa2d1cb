// Package forwarder stands in for Services in front of processes of this machine.
package forwarder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Forwarder stands in for a Service in front of its replicas: new connections
// go to replicas that say they are ready, in turn; those that exist stay.
type Forwarder struct {
	listener net.Listener
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	done     sync.WaitGroup

	mu       sync.Mutex
	backends map[*backend]struct{}
	turn     int
}

type backend struct {
	address string
	ready   bool
}

// New listens on a free loopback port.
func New() (*Forwarder, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &Forwarder{listener: listener, ctx: ctx, cancel: cancel, backends: map[*backend]struct{}{}}
	f.done.Go(func() { f.accept(ctx) })
	return f, nil
}

// Port that it listens on.
func (f *Forwarder) Port() int { return f.listener.Addr().(*net.TCPAddr).Port }

// Add puts a replica behind the forwarder; remove takes it away.
func (f *Forwarder) Add(address, readyURL string) (remove func()) {
	b := &backend{address: address}
	f.mu.Lock()
	f.backends[b] = struct{}{}
	f.mu.Unlock()
	ctx, cancel := context.WithCancel(f.ctx)
	f.done.Go(func() { f.probe(ctx, b, readyURL) })
	return func() {
		cancel()
		f.mu.Lock()
		delete(f.backends, b)
		f.mu.Unlock()
	}
}

// Close stops forwarding and ends every connection.
func (f *Forwarder) Close() error {
	f.cancel()
	err := f.listener.Close()
	f.done.Wait()
	return err
}

func (f *Forwarder) accept(ctx context.Context) {
	for {
		conn, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.done.Go(func() { f.pipe(ctx, conn) })
	}
}

func (f *Forwarder) pipe(ctx context.Context, in net.Conn) {
	defer in.Close()
	address, ok := f.next()
	if !ok {
		return
	}
	out, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer out.Close()
	stop := context.AfterFunc(ctx, func() { _ = errors.Join(in.Close(), out.Close()) })
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { copyHalf(out, in) })
	both.Go(func() { copyHalf(in, out) })
	both.Wait()
}

// copyHalf passes one direction on, its end included.
func copyHalf(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	if tcp, ok := to.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
}

func (f *Forwarder) next() (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ready []string
	for b := range f.backends {
		if b.ready {
			ready = append(ready, b.address)
		}
	}
	if len(ready) == 0 {
		return "", false
	}
	f.turn++
	return ready[f.turn%len(ready)], true
}

// A replica that is not ready is probed far more often than by a kubelet, so that tests are short. A ready one is
// probed seldom, since its readiness costs a TLS handshake. One that is asked to end has to be removed by then.
const (
	probeUnready = 50 * time.Millisecond
	probeReady   = time.Second
	probeTimeout = time.Second
)

// mostLate answers in a row take a replica off, like a kubelet's failureThreshold: one
// says only that the machine is busy. What a replica does say counts at once, a port
// that it has closed too.
const mostLate = 3

func (f *Forwarder) probe(ctx context.Context, b *backend, readyURL string) {
	client := &http.Client{Timeout: probeTimeout}
	for late := 0; ; {
		ready, err := IsReady(ctx, client, readyURL)
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			late++
		} else {
			late = 0
		}
		if late == 0 || late >= mostLate {
			f.mu.Lock()
			b.ready = ready
			f.mu.Unlock()
		}
		next := probeUnready
		if ready {
			next = probeReady
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
	}
}

// IsReady asks a process whether it is ready; false with an error if it does not answer.
func IsReady(ctx context.Context, client *http.Client, url string) (bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false, err
	}
	response, err := client.Do(request)
	if err != nil {
		return false, err
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK, nil
}

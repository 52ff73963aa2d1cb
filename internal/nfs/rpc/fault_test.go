package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// generous is more than any probe on loopback takes, where the time is not what is tested.
const generous = 30 * time.Second

// probeUntil probes with a clock that jumps to the timeout once the server says so.
func probeUntil(t *testing.T, target Target, hung <-chan struct{}) Result {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-hung:
			clock.Step(time.Second)
		case <-done:
		}
	}()
	return (&Client{Timeout: time.Second, Clock: clock}).Probe(t.Context(), target)
}

func TestHalfDeadServersAreClassified(t *testing.T) {
	hang := func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }
	half, call := be(1<<31|24, 1), make([]byte, 44)
	for name, c := range map[string]struct {
		reply []byte
		then  func(c net.Conn)
		want  Reason
	}{
		"accepts and never answers": {nil, hang, Silent},
		"half a reply, then silent": {half, hang, Silent},
		"closes at once":            {nil, nil, Closed},
		"half a reply, then ends":   {half, nil, Closed},
		"resets":                    {nil, func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) }, Closed},
		"is a web server":           {[]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), hang, Malformed},
		"answers another call":      {be(1<<31|24, 0, 1, 0, 0, 0, 0), hang, Malformed},
		"reply of too few bytes":    {be(1 << 31), hang, Malformed},
	} {
		t.Run(name, func(t *testing.T) {
			hung := make(chan struct{}, 1)
			address := startScript(t, func(conn net.Conn) {
				_, _ = io.ReadFull(conn, call)
				_, _ = conn.Write(c.reply)
				if c.want == Silent {
					hung <- struct{}{}
				}
				if c.then != nil {
					c.then(conn)
				}
			})
			result := probeUntil(t, Target{Address: address, Versions: []Version{V3, V4}, Shares: []string{"/data"}}, hung)
			if result.Reason != c.want || len(result.Findings) != 1 {
				t.Errorf("got %s (%s), want %s", result.Reason, result.Message, c.want)
			}
			must.True(t, c.want != Silent || result.Took == time.Second, "ended after %s", result.Took)
		})
	}
}

func TestServerThatHangsAfterNullIsSilent(t *testing.T) {
	hung := make(chan struct{}, 1)
	target := startV4(t, func(r request) {
		if r.procedure != 0 {
			hung <- struct{}{}
		}
	}, nil)
	expect(t, probeUntil(t, target, hung), Silent)
}

func TestFullBacklogIsADialTimeout(t *testing.T) {
	address := fullBacklog(t)
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	client := &Client{Timeout: time.Second, Clock: clock, Dial: func(ctx context.Context, a netip.AddrPort) (net.Conn, error) {
		go clock.Step(time.Second)
		return DialTCP(ctx, a)
	}}
	expect(t, client.Probe(t.Context(), Target{Address: address, Versions: []Version{V3}}), DialTimeout)
}

func TestProbeCanceledWhileItConnects(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	address := fullBacklog(t)
	client := &Client{Timeout: generous, Dial: func(ctx context.Context, a netip.AddrPort) (net.Conn, error) {
		go cancel()
		return DialTCP(ctx, a)
	}}
	expect(t, client.Probe(ctx, Target{Address: address, Versions: []Version{V3}}), Canceled)
}

func TestConnectionsEndWithoutReset(t *testing.T) {
	ends := make(chan error, 1)
	address := startScript(t, func(c net.Conn) {
		_, _ = io.ReadFull(c, make([]byte, 4))
		xid := make([]byte, 40)
		_, _ = io.ReadFull(c, xid)
		_, _ = c.Write(slices.Concat(be(1<<31|24), xid[:4], be(1, 0, 0, 0, 0)))
		_, err := c.Read(xid)
		ends <- err
	})
	expect(t, ask(t, Target{Address: address, Versions: []Version{V3}}), Serving)
	err := <-ends
	must.True(t, errors.Is(err, io.EOF), "the connection ended with %v", err)
}

// fullBacklog is a port whose queue of connections is full: the kernel drops further ones, as a lost node does.
func fullBacklog(t *testing.T) netip.AddrPort {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	must.Do(t, err)
	t.Cleanup(func() { _ = syscall.Close(fd) })
	err = errors.Join(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), syscall.Listen(fd, 0))
	name, nameErr := syscall.Getsockname(fd)
	must.Do(t, errors.Join(err, nameErr))
	address := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(name.(*syscall.SockaddrInet4).Port))
	queued, err := net.Dial("tcp", address.String())
	must.Do(t, err)
	t.Cleanup(func() { queued.Close() })
	return address
}

func TestClosedPortIsRefused(t *testing.T) {
	closed := listen(t)
	closed.Close()
	result := ask(t, Target{Address: addressOf(closed), Versions: []Version{V3, V4}})
	must.True(t, result.Reason == Refused && len(result.Findings) == 1, "%s (%s)", result.Reason, result.Message)
}

func TestFailuresToConnectAreClassified(t *testing.T) {
	for err, want := range map[error]Reason{
		syscall.EHOSTUNREACH:  Unreachable,
		syscall.ENETUNREACH:   Unreachable,
		syscall.ENOPROTOOPT:   Unreachable,
		syscall.ETIMEDOUT:     DialTimeout,
		syscall.ECONNRESET:    Closed,
		syscall.EMFILE:        Local,
		syscall.EADDRNOTAVAIL: Local,
		syscall.EPERM:         Local,
	} {
		client := &Client{Timeout: generous, Dial: func(context.Context, netip.AddrPort) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", err)}
		}}
		expect(t, client.Probe(t.Context(), Target{Address: netip.MustParseAddrPort("127.0.0.1:2049"), Versions: []Version{V4}}), want)
	}
}

func TestCallerEndsAProbe(t *testing.T) {
	for want, end := range map[Reason]func(context.Context) (context.Context, context.CancelFunc){Canceled: context.WithCancel, Silent: deadlineNow} {
		t.Run(string(want), func(t *testing.T) {
			ctx, cancel := end(t.Context())
			address := startScript(t, func(c net.Conn) { _, _ = io.ReadFull(c, make([]byte, 44)); cancel(); _, _ = io.Copy(io.Discard, c) })
			expect(t, (&Client{Timeout: generous}).Probe(ctx, Target{Address: address, Versions: []Version{V3}}), want)
		})
	}
}

// deadlineNow is a context that ends as with a deadline when it is canceled.
func deadlineNow(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, func() { cancel(fmt.Errorf("the caller's: %w", context.DeadlineExceeded)) }
}

// The message is in the service's status: each change is a write.
func TestMessagesOfOneFaultAreEqual(t *testing.T) {
	port := 700
	dial := func(context.Context, netip.AddrPort) (net.Conn, error) {
		port++
		return nil, &net.OpError{Op: "dial", Net: "tcp", Source: &net.TCPAddr{Port: port}, Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}
	}
	for name, c := range map[string]struct {
		server func(net.Conn)
		dial   func(context.Context, netip.AddrPort) (net.Conn, error)
	}{
		"unreachable": {nil, dial},
		"resets":      {func(c net.Conn) { _, _ = io.ReadFull(c, make([]byte, 44)); _ = c.(*net.TCPConn).SetLinger(0) }, nil},
		"answers another call": {func(c net.Conn) {
			call := make([]byte, 44)
			_, _ = io.ReadFull(c, call)
			call[7]++
			_, _ = c.Write(slices.Concat(be(1<<31|24), call[4:8], be(1, 0, 0, 0, 0)))
			_, _ = io.Copy(io.Discard, c)
		}, nil},
	} {
		address := netip.MustParseAddrPort("10.0.0.1:2049")
		if c.server != nil {
			address = startScript(t, c.server)
		}
		client := &Client{Timeout: generous, Dial: c.dial}
		first := client.Probe(t.Context(), Target{Address: address, Versions: []Version{V3}})
		second := client.Probe(t.Context(), Target{Address: address, Versions: []Version{V3}})
		must.Equal(t, first.Message, second.Message, "second message: %s", name)
	}
}

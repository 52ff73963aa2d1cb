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

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// generous is more than any probe on loopback takes, where the time is not what is tested.
const generous = 30 * time.Second

// short is the timeout of probes that have to wait for it.
const short = 200 * time.Millisecond

func TestHalfDeadServersAreClassified(t *testing.T) {
	hang := func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }
	half, call := be(1<<31|24, 1), make([]byte, 44)
	for name, c := range map[string]struct {
		reply []byte
		then  func(c net.Conn)
		want  outcome
	}{
		"accepts and never answers": {nil, hang, silent},
		"half a reply, then silent": {half, hang, silent},
		"closes at once":            {nil, nil, closed},
		"half a reply, then ends":   {half, nil, closed},
		"resets":                    {nil, func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) }, closed},
		"is a web server":           {[]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), hang, badReply},
		"answers another call":      {be(1<<31|24, 0, 1, 0, 0, 0, 0), hang, badReply},
		"reply of too few bytes":    {be(1 << 31), hang, badReply},
	} {
		t.Run(name, func(t *testing.T) {
			address := startScript(t, func(conn net.Conn) {
				_, _ = io.ReadFull(conn, call)
				_, _ = conn.Write(c.reply)
				if c.then != nil {
					c.then(conn)
				}
			})
			target := Target{Address: address, Versions: []int32{V3, V4}, Shares: []string{"/data"}}
			if c.want == silent {
				target.Timeout = short
			}
			result := ask(t, target)
			expect(t, result, c.want)
			must.True(t, c.want != silent || result.Took >= short && result.Took < generous, "ended after %s", result.Took)
		})
	}
}

func TestServerThatHangsAfterNullIsSilent(t *testing.T) {
	target := startV4(t, nil, nil)
	target.Timeout = short
	expect(t, ask(t, target), silent)
}

func TestFullBacklogIsADialTimeout(t *testing.T) {
	expect(t, ask(t, Target{Address: fullBacklog(t), Versions: []int32{V3}, Timeout: short}), dialTimeout)
}

func TestProbeCanceledWhileItConnects(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := newProbe(Target{Address: fullBacklog(t), Versions: []int32{V3}, Timeout: generous})
	p.dial = func(ctx context.Context, a netip.AddrPort) (net.Conn, error) {
		go cancel()
		return DialTCP(ctx, a)
	}
	expect(t, p.run(ctx), canceled)
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
	expect(t, ask(t, Target{Address: address, Versions: []int32{V3}}), fine)
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
	listener := listen(t)
	listener.Close()
	expect(t, ask(t, Target{Address: addressOf(listener), Versions: []int32{V3, V4}}), refused)
}

func TestFailuresToConnectAreClassified(t *testing.T) {
	for err, want := range map[error]outcome{
		syscall.EHOSTUNREACH:  unreached,
		syscall.ENETUNREACH:   unreached,
		syscall.ENOPROTOOPT:   unreached,
		syscall.ETIMEDOUT:     dialTimeout,
		syscall.ECONNRESET:    closed,
		syscall.EMFILE:        local,
		syscall.EADDRNOTAVAIL: local,
		syscall.EPERM:         local,
	} {
		target := Target{Address: netip.MustParseAddrPort("127.0.0.1:2049"), Versions: []int32{V4}}
		expect(t, askWith(t, target, func(context.Context, netip.AddrPort) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", err)}
		}), want)
	}
}

func TestCallerEndsAProbe(t *testing.T) {
	for want, end := range map[outcome]func(context.Context) (context.Context, context.CancelFunc){canceled: context.WithCancel, silent: deadlineNow} {
		t.Run(want.text, func(t *testing.T) {
			ctx, cancel := end(t.Context())
			address := startScript(t, func(c net.Conn) { _, _ = io.ReadFull(c, make([]byte, 44)); cancel(); _, _ = io.Copy(io.Discard, c) })
			expect(t, Probe(ctx, Target{Address: address, Versions: []int32{V3}, Timeout: generous}), want)
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
		target := Target{Address: address, Versions: []int32{V3}}
		first, second := askWith(t, target, c.dial), askWith(t, target, c.dial)
		must.Equal(t, first.Message, second.Message, "second message: %s", name)
	}
}

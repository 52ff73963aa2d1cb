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

	"github.com/fairlead-io/fairlead/internal/nfs/rpc/wire"
)

// errOwn: the prober itself failed, or was stopped, which says nothing about the server.
var errOwn = errors.New("the prober is at fault")

// unreachable are the errors of connect(2) that come from routers and firewalls.
var unreachable = []error{
	syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.ENETDOWN, syscall.ENOPROTOOPT,
}

func (p *probe) dialFault(address netip.AddrPort, err error) error {
	is := func(kinds ...error) bool {
		return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
	}
	switch {
	case p.canceled():
		return fmt.Errorf("%s was not probed: the probe was canceled: %w", address, errOwn)
	case p.late(err):
		return fmt.Errorf("%s accepted no connection in time (timeout %s): the node is down, packets are dropped, or the server stopped accepting", address, p.Timeout)
	case is(syscall.ECONNREFUSED):
		return fmt.Errorf("%s refused the connection: no server listens there", address)
	case is(unreachable...):
		return fmt.Errorf("%s can't be reached: %w", address, plain(err))
	case is(syscall.ECONNRESET, syscall.ECONNABORTED):
		return fmt.Errorf("%s reset the connection while it was opened", address)
	}
	return fmt.Errorf("%s was not probed, since the prober can't open connections: %w: %w", address, plain(err), errOwn)
}

// callFault is for errors of writing a call or reading its reply. Step names the procedure.
func (p *probe) callFault(address netip.AddrPort, step string, err error) error {
	switch {
	case wire.IsBadRecord(err):
		return fmt.Errorf("%s does not speak RPC (%s): %w; another service may have the port", address, step, err)
	case p.canceled():
		return fmt.Errorf("%s was not probed to the end: the probe was canceled: %w", address, errOwn)
	case p.late(err):
		return fmt.Errorf("%s accepted the connection and did not answer %s in time (timeout %s): the server hangs or is stopped", address, step, p.Timeout)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s closed the connection before its reply to %s was complete", address, step)
	}
	return fmt.Errorf("%s broke the connection before its reply to %s was complete: %w", address, step, plain(err))
}

// canceled reports whether the caller ended the probe.
func (p *probe) canceled() bool {
	cause := context.Cause(p.ctx)
	return cause != nil && !errors.Is(cause, context.DeadlineExceeded)
}

// late reports whether the time is over. The dialer and the kernel may notice before the context does.
func (p *probe) late(err error) bool {
	return p.ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, syscall.ETIMEDOUT)
}

// plain is an error without the ends of the connection: the prober's port differs from
// probe to probe, and the message is in the status of the service.
func plain(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

func malformed(address netip.AddrPort, step string, err error) error {
	return fmt.Errorf("%s gave a malformed reply to %s: %w; another service may have the port", address, step, err)
}

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

// fault is a step without a usable reply. Steps that depend on that step are skipped.
type fault struct {
	reason  Reason
	message string
}

func (f *fault) Error() string { return f.message }

// errTimeout is the cause with which a probe's context ends at its own deadline.
var errTimeout = errors.New("the probe's time is over")

// endOf returns how the context ended: by its deadline or by the caller. ok is false while the context has not ended.
func endOf(ctx context.Context, err error) (reason Reason, ok bool) {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, errTimeout), errors.Is(cause, context.DeadlineExceeded):
		return Silent, true
	case cause != nil:
		return Canceled, true
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT): // the kernel's, or of an own Dial
		return Silent, true
	}
	return "", false
}

// unreachable are the errors of connect(2) that come from routers and firewalls.
var unreachable = []syscall.Errno{
	syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.ENETDOWN, syscall.ENOPROTOOPT,
}

func (p *probe) dialFault(address netip.AddrPort, err error) *fault {
	say := func(reason Reason, format string, args ...any) *fault {
		return &fault{reason, fmt.Sprintf("%s %s", address, fmt.Sprintf(format, args...))}
	}
	if end, ok := endOf(p.ctx, err); ok && end == Canceled {
		return say(Canceled, "was not probed: the probe was canceled")
	} else if ok {
		return say(DialTimeout, "accepted no connection in time (timeout %s): the node is down, packets are dropped, or the server stopped accepting", p.timeout())
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return say(Refused, "refused the connection: no server listens there")
	case slices.ContainsFunc(unreachable, func(e syscall.Errno) bool { return errors.Is(err, e) }):
		return say(Unreachable, "can't be reached: %v", plain(err))
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.ECONNABORTED):
		return say(Closed, "reset the connection while it was opened")
	}
	return say(Local, "was not probed, since the prober can't open connections: %v", plain(err))
}

// callFault is for errors of writing a call or reading its reply. Step names the procedure.
func (p *probe) callFault(address netip.AddrPort, step string, err error) *fault {
	say := func(reason Reason, format string, args ...any) *fault {
		return &fault{reason, fmt.Sprintf("%s %s", address, fmt.Sprintf(format, args...))}
	}
	if wire.IsBadRecord(err) {
		return say(Malformed, "does not speak RPC (%s): %v; another service may have the port", step, err)
	}
	if end, ok := endOf(p.ctx, err); ok && end == Canceled {
		return say(Canceled, "was not probed to the end: the probe was canceled")
	} else if ok {
		return say(Silent, "accepted the connection and did not answer %s in time (timeout %s): the server hangs or is stopped", step, p.timeout())
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return say(Closed, "closed the connection before its reply to %s was complete", step)
	}
	return say(Closed, "broke the connection before its reply to %s was complete: %v", step, plain(err))
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

func malformed(address netip.AddrPort, step string, err error) *fault {
	return &fault{Malformed, fmt.Sprintf("%s gave a malformed reply to %s: %v; another service may have the port", address, step, err)}
}

package rpc

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"k8s.io/utils/clock"

	"github.com/fairlead-io/fairlead/internal/nfs/rpc/wire"
)

// DefaultTimeout bounds a whole probe: all its connections and calls.
const DefaultTimeout = time.Second

// Client probes NFS servers. Its zero value is ready for use. It keeps no state between probes and may be used
// by many goroutines.
type Client struct {
	// Timeout bounds a whole probe. 0: DefaultTimeout. The context of Probe may end it earlier.
	Timeout time.Duration
	// Dial opens a connection. nil: DialReserved for targets with shares, else DialTCP.
	Dial func(context.Context, netip.AddrPort) (net.Conn, error)
	// Clock measures the timeout. nil: the real one.
	Clock clock.WithDelayedExecution
}

func (p *probe) timeout() time.Duration {
	return cmp.Or(p.target.Timeout, p.client.Timeout, DefaultTimeout)
}

func (c *Client) dialer(target Target) func(context.Context, netip.AddrPort) (net.Conn, error) {
	switch {
	case c.Dial != nil:
		return c.Dial
	case len(target.Shares) > 0:
		return DialReserved
	}
	return DialTCP
}

func (c *Client) clock() clock.WithDelayedExecution {
	if c.Clock != nil {
		return c.Clock
	}
	return clock.RealClock{}
}

// probe is one run against one target.
type probe struct {
	client *Client
	ctx    context.Context // ends with the probe
	target Target
}

// Probe asks the server for each version on a connection of its own, and for each share. It returns when all is
// answered, when the server stops answering, or when the time is over.
func (c *Client) Probe(ctx context.Context, target Target) Result {
	started := c.clock().Now()
	result := summarize(c.findings(ctx, target))
	result.Started, result.Took = started, c.clock().Since(started)
	return result
}

func (c *Client) findings(ctx context.Context, target Target) []Finding {
	if err := target.Validate(); err != nil {
		return []Finding{{Reason: Invalid, Message: fmt.Sprintf("the target can't be probed: %v", err)}}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := &probe{client: c, ctx: ctx, target: target}
	timer := c.clock().AfterFunc(p.timeout(), func() { cancel(errTimeout) })
	defer timer.Stop()

	var findings []Finding
	for _, v := range target.Versions {
		found, err := p.version(v)
		findings = append(findings, found...)
		if err != nil {
			return append(findings, Finding{Version: v, Reason: err.reason, Message: fmt.Sprintf("%s: %s", v, err.message)})
		}
	}
	return findings
}

// version probes one version. A fault means: the server does not answer, and other versions need not be tried.
func (p *probe) version(v Version) ([]Finding, *fault) {
	nfs, f := p.dial(p.target.Address)
	if f != nil {
		return nil, f
	}
	defer nfs.close()
	reply, f := nfs.call("NULL", wire.Call{Program: wire.ProgramNFS, Version: uint32(v), Procedure: wire.ProcedureNull})
	if f != nil {
		return nil, f
	}
	if reply.Outcome != wire.Success {
		return []Finding{p.outcomeFinding(v, "", "NULL", reply)}, nil
	}
	if len(p.target.Shares) == 0 {
		return []Finding{{Version: v, Reason: Serving, Message: p.server(v) + " answers"}}, nil
	}
	if v == V3 {
		return p.shares3(nfs)
	}
	return p.shares4(nfs)
}

// outcomeFinding is for a call to the NFS program that was answered, and not executed.
func (p *probe) outcomeFinding(v Version, share, step string, reply wire.Reply) Finding {
	finding := Finding{Version: v, Share: share}
	say := func(reason Reason, format string, args ...any) Finding {
		finding.Reason, finding.Message = reason, p.server(v)+" "+fmt.Sprintf(format, args...)
		return finding
	}
	switch reply.Outcome {
	case wire.ProgramMismatch:
		if reply.HasRange {
			return say(WrongVersion, "is not served: the server offers versions %d to %d", reply.Low, reply.High)
		}
		return say(WrongVersion, "is not served: the server does not say which versions it offers")
	case wire.ProgramUnavailable:
		return say(WrongVersion, "is not served: an RPC server answers there, and it is not an NFS server")
	case wire.RPCMismatch:
		return say(WrongVersion, "is not served: the server does not accept RPC version 2")
	case wire.AuthError:
		return say(Denied, "does not accept the prober's credential for %s (auth_stat %d): the server may ask for Kerberos, or for a source port below 1024", step, reply.Auth)
	}
	return say(Failing, "answered %s to %s; look at the server's log", reply.Outcome, step)
}

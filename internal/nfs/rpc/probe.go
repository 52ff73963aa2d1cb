package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-io/fairlead/internal/nfs/rpc/wire"
)

// Verdict is what a probe says about the server's health.
type Verdict string

// The verdicts. With Unknown the fault is the prober's own, and the probe counts neither as success nor as failure.
const (
	Unknown   Verdict = "Unknown"
	Healthy   Verdict = "Healthy"
	Unhealthy Verdict = "Unhealthy"
)

// Result of one probe.
type Result struct {
	Verdict Verdict
	// Message says what is wrong, why, and what to do; empty if the server is healthy. It is the same for the same fault: each
	// change of a service's status is a write.
	Message string
	Started time.Time
	Took    time.Duration
}

type dial func(context.Context, netip.AddrPort) (net.Conn, error)

// probe is one run against one target.
type probe struct {
	Target
	ctx  context.Context // ends with the probe
	dial dial
	// port of the port mapper.
	portMapper uint16
	// problems of versions and shares, found on a server that answers.
	problems []string
	// present are shares that a version has; absent are problems of shares that one lacks.
	present map[string]bool
	absent  []absence
}

// absence is the problem of a share that one version lacks.
type absence struct{ share, problem string }

// Probe asks the server for each version on a connection of its own, and for each share. It returns when all is
// answered, when the server stops answering, or when the time is over.
func Probe(ctx context.Context, target Target) Result { return newProbe(target).run(ctx) }

func newProbe(target Target) *probe {
	p := &probe{Target: target, dial: DialTCP, portMapper: portPortMapper, present: map[string]bool{}}
	if len(target.Shares) > 0 {
		p.dial = DialReserved
	}
	return p
}

func (p *probe) run(ctx context.Context) Result {
	started := time.Now()
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	p.ctx = ctx
	var fault error
	for _, v := range p.Versions {
		if err := p.version(v); err != nil { // the server does not answer, and other versions need not be tried
			fault = fmt.Errorf("NFS v%d: %w", v, err)
			break
		}
	}
	p.judgeAbsent()
	result := Result{Verdict: Healthy, Started: started, Took: time.Since(started)}
	own := errors.Is(fault, errOwn)
	if fault != nil && !own {
		p.problems = append(p.problems, fault.Error())
	}
	switch {
	case len(p.problems) > 0:
		result.Verdict, result.Message = Unhealthy, join(p.problems)
	case own:
		result.Verdict, result.Message = Unknown, fault.Error()
	}
	return result
}

// maxMessages keeps the message readable when many shares are gone.
const maxMessages = 3

func join(problems []string) string {
	if more := len(problems) - maxMessages; more > 0 {
		problems = append(problems[:maxMessages:maxMessages], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(problems, "; ")
}

// version probes one version. An error means that the server does not answer.
func (p *probe) version(v int32) error {
	nfs, err := p.connect(p.Address)
	if err != nil {
		return err
	}
	defer nfs.close()
	reply, err := nfs.call("NULL", wire.Call{Program: wire.ProgramNFS, Version: uint32(v), Procedure: wire.ProcedureNull})
	switch {
	case err != nil:
		return err
	case reply.Outcome != wire.Success:
		p.rejected(v, "NULL", reply)
		return nil
	case len(p.Shares) == 0:
		return nil
	case v == V3:
		return p.shares3(nfs)
	}
	return p.shares4(nfs)
}

// shares4 looks the shares up by name from the root, over the connection that NULL used. That needs no client
// ID and works in the grace period (RFC 7530, section 9.6.2). A server that limits the operations of a COMPOUND (Linux to 16
// at first) refuses to look up a share of more directories, which does not count against it.
func (p *probe) shares4(nfs *conn) error {
	for _, share := range p.Shares {
		call := wire.Call{Program: wire.ProgramNFS, Version: uint32(V4), Procedure: wire.ProcedureCompound, Credential: credential, Arguments: wire.LookupArguments(names(share))}
		if err := p.lookUp(nfs, V4, share, "COMPOUND", call); err != nil {
			return err
		}
	}
	return nil
}

// lookUp makes a call to NFS about a share, whose results begin with the status.
func (p *probe) lookUp(nfs *conn, v int32, share, step string, call wire.Call) error {
	reply, err := nfs.call(step, call)
	if err != nil {
		return err
	}
	if reply.Outcome != wire.Success {
		p.rejected(v, step, reply)
		return nil
	}
	status, err := wire.ParseStatus(reply.Results)
	if err != nil {
		return malformed(nfs.address, step, err)
	}
	p.share(v, share, step, status)
	return nil
}

// rejected is for a call to the NFS program that was answered, and not executed. A server that does not accept the prober's
// credential may accept those of clients.
func (p *probe) rejected(v int32, step string, reply wire.Reply) {
	switch reply.Outcome {
	case wire.AuthError:
	case wire.ProgramMismatch:
		if reply.HasRange {
			p.problem("%s is not served: the server offers versions %d to %d", p.server(v), reply.Low, reply.High)
		} else {
			p.problem("%s is not served: the server does not say which versions it offers", p.server(v))
		}
	case wire.ProgramUnavailable:
		p.problem("%s is not served: an RPC server answers there, and it is not an NFS server", p.server(v))
	case wire.RPCMismatch:
		p.problem("%s is not served: the server does not accept RPC version 2", p.server(v))
	default:
		p.problem("%s answered %s to %s; look at the server's log", p.server(v), reply.Outcome, step)
	}
}

// problem records a problem once.
func (p *probe) problem(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(p.problems, text) {
		p.problems = append(p.problems, text)
	}
}

// server names the server in messages.
func (p *probe) server(v int32) string { return fmt.Sprintf("NFS v%d at %s", v, p.Address) }

// credential has the prober's host name.
var credential = wire.System("fairlead")

package rpc

import "github.com/fairlead-io/fairlead/internal/nfs/rpc/wire"

// shares4 looks the shares up by name from the root, over the connection that NULL used. That needs no client
// ID and works in the grace period (RFC 7530, section 9.6.2).
func (p *probe) shares4(nfs *conn) ([]Finding, *fault) {
	findings := make([]Finding, 0, len(p.target.Shares))
	for _, share := range p.target.Shares {
		finding, f := p.share4(nfs, share)
		if f != nil {
			return findings, f
		}
		findings = append(findings, finding)
	}
	return findings, nil
}

func (p *probe) share4(nfs *conn, share string) (Finding, *fault) {
	const step = "COMPOUND"
	lookup, later := wire.Lookup{Names: names(share)}.Next()
	for {
		reply, f := nfs.call(step, wire.Call{
			Program: wire.ProgramNFS, Version: uint32(V4), Procedure: wire.ProcedureCompound,
			Credential: credential, Arguments: lookup.Arguments(),
		})
		if f != nil {
			return Finding{}, f
		}
		if reply.Outcome != wire.Success {
			return p.outcomeFinding(V4, share, step, reply), nil
		}
		found, err := lookup.Parse(reply.Results)
		if err != nil {
			return Finding{}, malformed(nfs.address, step, err)
		}
		if found.Status != wire.OK || len(later) == 0 {
			return p.shareFinding(V4, share, step, found.Status), nil
		}
		lookup, later = wire.Lookup{From: found.Handle, Names: later}.Next()
	}
}

// credential has the prober's host name.
var credential = wire.System("fairlead")

package rpc

import "github.com/fairlead-io/fairlead/internal/nfs/rpc/wire"

// shares4 looks the shares up by name from the root, over the connection that NULL used. That needs no client
// ID and works in the grace period (RFC 7530, section 9.6.2). A server that limits the operations of a COMPOUND (Linux to 16
// at first) refuses to look up a share of more directories, which does not count against it.
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
	path := names(share)
	reply, f := nfs.call(step, wire.Call{
		Program: wire.ProgramNFS, Version: uint32(V4), Procedure: wire.ProcedureCompound,
		Credential: credential, Arguments: wire.LookupArguments(path),
	})
	if f != nil {
		return Finding{}, f
	}
	if reply.Outcome != wire.Success {
		return p.outcomeFinding(V4, share, step, reply), nil
	}
	status, err := wire.ParseLookup(reply.Results, len(path))
	if err != nil {
		return Finding{}, malformed(nfs.address, step, err)
	}
	return p.shareFinding(V4, share, step, status), nil
}

// credential has the prober's host name.
var credential = wire.System("fairlead")

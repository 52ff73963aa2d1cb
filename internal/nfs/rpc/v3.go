package rpc

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/internal/nfs/rpc/wire"
)

// shares3 asks the MOUNT service for each share, and NFS for the attributes of its root. If the MOUNT service
// does not answer, that is a finding of version 3 and no fault: NFS did answer.
func (p *probe) shares3(nfs *conn) ([]Finding, *fault) {
	mount, f := p.dialMount()
	if f != nil {
		return []Finding{p.mountFinding("", f)}, nil
	}
	defer mount.close()
	findings := make([]Finding, 0, len(p.target.Shares))
	for _, share := range p.target.Shares {
		finding, mountFault, nfsFault := p.share3(nfs, mount, share)
		if nfsFault != nil {
			return findings, nfsFault
		}
		if mountFault != nil {
			return append(findings, p.mountFinding(share, mountFault)), nil
		}
		findings = append(findings, finding)
	}
	return findings, nil
}

// share3 calls MNT, UMNT and GETATTR. UMNT only removes the server's record of the mount. It is sent before GETATTR,
// so that the record is removed even if GETATTR is never answered.
func (p *probe) share3(nfs, mount *conn, share string) (finding Finding, mountFault, nfsFault *fault) {
	reply, f := mount.call("MNT", mountCall(wire.ProcedureMount, share))
	if f == nil && reply.Outcome != wire.Success {
		f = p.mountOutcome(mount, "MNT", reply)
	}
	if f != nil {
		return Finding{}, f, nil
	}
	status, handle, err := wire.ParseMount(reply.Results)
	if err != nil {
		return Finding{}, malformed(mount.address, "MNT", err), nil
	}
	if reasonOf(status) == Denied && p.unlisted(mount, share) {
		return p.finding(V3, share, ExportGone, fmt.Sprintf("MNT: %s, and EXPORT does not list it", status)), nil, nil
	}
	if status != wire.OK {
		return p.shareFinding(V3, share, "MNT", status), nil, nil
	}
	if xid, f := mount.send("UMNT", mountCall(wire.ProcedureUnmount, share)); f == nil {
		// A reset before the server has read the call would drop it, so the reply is awaited, whatever it is.
		defer func() { _, _ = mount.receive("UMNT", xid) }()
	}
	return p.attributes3(nfs, share, handle)
}

// unlisted reports whether EXPORT lists neither the share nor a directory above it. Linux' mountd and NFS-Ganesha
// deny a path that is not exported, as they deny one that the prober may not mount. Without an answer it is false.
func (p *probe) unlisted(mount *conn, share string) bool {
	reply, f := mount.call("EXPORT", wire.Call{
		Program: wire.ProgramMount, Version: wire.VersionMount, Procedure: wire.ProcedureExports, Credential: credential,
	})
	if f != nil || reply.Outcome != wire.Success {
		return false
	}
	exports, err := wire.ParseExports(reply.Results)
	return err == nil && !slices.ContainsFunc(exports, func(export string) bool {
		return share == export || strings.HasPrefix(share, strings.TrimSuffix(export, "/")+"/")
	})
}

func (p *probe) attributes3(nfs *conn, share string, handle []byte) (finding Finding, mountFault, nfsFault *fault) {
	reply, f := nfs.call("GETATTR", wire.Call{
		Program: wire.ProgramNFS, Version: uint32(V3), Procedure: wire.ProcedureGetAttr,
		Credential: credential, Arguments: wire.HandleArguments(handle),
	})
	if f != nil {
		return Finding{}, nil, f
	}
	if reply.Outcome != wire.Success {
		return p.outcomeFinding(V3, share, "GETATTR", reply), nil, nil
	}
	status, err := wire.ParseAttributes(reply.Results)
	if err != nil {
		return Finding{}, nil, malformed(nfs.address, "GETATTR", err)
	}
	return p.shareFinding(V3, share, "GETATTR", status), nil, nil
}

func mountCall(procedure uint32, share string) wire.Call {
	return wire.Call{
		Program: wire.ProgramMount, Version: wire.VersionMount, Procedure: procedure,
		Credential: credential, Arguments: wire.PathArguments(share),
	}
}

// mountOutcome is for a call to MOUNT that was not executed. A refused credential is no failure of the service.
func (p *probe) mountOutcome(mount *conn, step string, reply wire.Reply) *fault {
	reason := MountDown
	if reply.Outcome == wire.AuthError {
		reason = Denied
	}
	return &fault{reason, fmt.Sprintf("%s answered %s to %s", mount.address, reply.Outcome, step)}
}

// mountFinding turns a fault of the MOUNT service or the port mapper into a finding about version 3.
func (p *probe) mountFinding(share string, f *fault) Finding {
	reason := f.reason
	if reason.Verdict() == Unhealthy {
		reason = MountDown
	}
	return Finding{Version: V3, Share: share, Reason: reason, Message: fmt.Sprintf("%s answers, and its shares can't be looked up: %s", p.server(V3), f.message)}
}

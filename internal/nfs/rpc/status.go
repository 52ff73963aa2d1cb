package rpc

import (
	"fmt"
	"slices"

	"github.com/fairlead-io/fairlead/internal/nfs/rpc/wire"
)

var (
	// tolerated are statuses with which a share may still be mounted by clients: the server recovers after a restart, is busy,
	// denies the share to the prober, or has no means for the look-up.
	tolerated = []wire.Status{
		wire.OK, wire.Grace, wire.Delay, wire.MinorVersion, wire.PermissionDenied, wire.AccessDenied, wire.WrongSecurity,
		wire.NotSupported, wire.Resource, wire.Symlink, wire.IllegalOperation, wire.NotInSession,
	}
	// unknown are statuses of a name that the version does not have.
	unknown = []wire.Status{wire.NoEntry, wire.NotDirectory}
	// gone are statuses of a share that is not exported, or whose handle is stale. Servers that hide shares from those who may
	// not use them answer the same (NFS-Ganesha does).
	gone = []wire.Status{
		wire.NoEntry, wire.NotDirectory, wire.Invalid, wire.NameTooLong, wire.Stale, wire.BadHandle, wire.HandleExpired,
		wire.NoHandle, wire.Moved, wire.BadCharacter, wire.BadName,
	}
)

// share judges the status of MNT, GETATTR or COMPOUND about a share. Step is the procedure that answered.
func (p *probe) share(v int32, share, step string, status wire.Status) {
	const help = "%s: share %s is not exported, or hidden from the prober; export it, allow the prober's address, or remove the server (%s: %s)"
	switch {
	case slices.Contains(tolerated, status):
		p.present[share] = true
	case slices.Contains(unknown, status):
		p.absent = append(p.absent, absence{share, fmt.Sprintf(help, p.server(v), share, step, status)})
	case slices.Contains(gone, status):
		p.problem(help, p.server(v), share, step, status)
	default:
		p.problem("%s: share %s can't be read; look at the server's log and disks (%s: %s)", p.server(v), share, step, status)
	}
}

// judgeAbsent records the shares that no version has. One that only one version has is well: NFSv4's names may begin below
// those of NFSv3 (Linux: fsid=0 in exports(5); NFS-Ganesha: Pseudo beside Path).
func (p *probe) judgeAbsent() {
	for _, a := range p.absent {
		if !p.present[a.share] {
			p.problem("%s", a.problem)
		}
	}
}

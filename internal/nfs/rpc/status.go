package rpc

import (
	"fmt"

	"github.com/fairlead-io/fairlead/internal/nfs/rpc/wire"
)

// reasonOf is the reason for a status of MNT, GETATTR or COMPOUND about a share.
func reasonOf(status wire.Status) Reason {
	switch status {
	case wire.OK:
		return Serving
	case wire.Grace:
		return Grace
	case wire.Delay:
		return Busy
	case wire.MinorVersion:
		return MinorVersion
	case wire.PermissionDenied, wire.AccessDenied, wire.WrongSecurity:
		return Denied
	case wire.NotSupported, wire.Resource, wire.Symlink, wire.IllegalOperation, wire.NotInSession:
		return Unchecked
	case wire.NoEntry, wire.NotDirectory, wire.Invalid, wire.NameTooLong, wire.Stale, wire.BadHandle, wire.HandleExpired,
		wire.NoHandle, wire.Moved, wire.BadCharacter, wire.BadName:
		return ExportGone
	}
	return Failing
}

var advice = map[Reason]string{
	Serving:      "is exported",
	Grace:        "was not looked up: the server is in its grace period after a restart",
	Busy:         "was not looked up: the server asks to try again later",
	MinorVersion: "was not looked up: the server does not serve NFS v4.0, only later minor versions",
	Denied:       "was not looked up: the server denies it to the prober; allow the prober's address, or name no shares",
	Unchecked:    "was not looked up: the server does not support it",
	ExportGone:   "is not exported, or hidden from the prober; export it, allow the prober's address, or remove the server",
	Failing:      "can't be read; look at the server's log and disks",
}

// shareFinding is the finding for a status. Step is the procedure that answered it.
func (p *probe) shareFinding(v Version, share, step string, status wire.Status) Finding {
	return p.finding(v, share, reasonOf(status), fmt.Sprintf("%s: %s", step, status))
}

func (p *probe) finding(v Version, share string, reason Reason, detail string) Finding {
	message := fmt.Sprintf("%s: share %s %s", p.server(v), share, advice[reason])
	if reason != Serving {
		message += fmt.Sprintf(" (%s)", detail)
	}
	return Finding{Version: v, Share: share, Reason: reason, Message: message}
}

// server names the server in messages.
func (p *probe) server(v Version) string { return fmt.Sprintf("%s at %s", v, p.target.Address) }

package rollout

import (
	"slices"

	"github.com/fairlead-io/fairlead/internal/storage"
)

// Place is where a volume's Service and server go that are made now. ready is
// false when the volume asks for a network that servers may not be on yet: then
// it goes where all volumes go, without the addresses it has on the other.
//
// The webhook and the controller both go by this, so that what one makes the
// other does not want to make anew.
func (r Record) Place(q storage.Request) (p storage.Placement, ready bool) {
	common := storage.Placement{Network: r.Servers}
	if q.Network.IsZero() || q.Network == r.Servers.Network {
		if !r.Servers.IsZero() {
			common.Identity = q.Identity
		}
		return common, true
	}
	if own := storage.VolumeAttachment(q.Network); slices.Contains(r.VolumeServers, own) {
		return storage.Placement{Network: own, Identity: q.Identity}, true
	}
	return common, false
}

// Due is where the volume's Service goes that is made now.
func (r Rollout) Due(volume string) storage.Placement {
	p, _ := r.Record.Place(r.RequestOf(volume))
	return p
}

// RequestOf is what annotations ask for the volume.
func (r Rollout) RequestOf(volume string) storage.Request {
	if v, known := r.lookup().volumes[volume]; known {
		return v.Request
	}
	return storage.Request{}
}

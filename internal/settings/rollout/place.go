package rollout

import (
	"slices"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

// Place returns the placement of a volume's new Service and server. ready is false if servers may not
// use the requested network yet: the volume is then on the default network, without its own addresses.
//
// The webhook and the controller both use it, so that neither replaces the objects of the other.
func (r Record) Place(q rwx.Request) (p multus.Placement, ready bool) {
	byDefault := multus.Placement{Network: r.Servers}
	if q.Network.IsZero() || q.Network == r.Servers.Network {
		if !r.Servers.IsZero() {
			byDefault.Identity = q.Identity
		}
		return byDefault, true
	}
	if own := multus.VolumeAttachment(q.Network); slices.Contains(r.VolumeServers, own) {
		return multus.Placement{Network: own, Identity: q.Identity}, true
	}
	return byDefault, false
}

// Due returns the placement of a new Service of the volume.
func (r Rollout) Due(volume string) multus.Placement {
	p, _ := r.Record.Place(r.RequestOf(volume))
	return p
}

// RequestOf returns the request in the annotations of the volume.
func (r Rollout) RequestOf(volume string) rwx.Request {
	if v, known := r.lookup().volumes[volume]; known {
		return v.Request
	}
	return rwx.Request{}
}

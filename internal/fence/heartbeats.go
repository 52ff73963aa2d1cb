package fence

import (
	"slices"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

const (
	// ReadLeasesEvery is how often the Leases of nodes are read while old containers on some node have to end.
	ReadLeasesEvery = 15 * time.Second
	// leaseDuration is for how long a kubelet counts as in touch, if its Lease does not say (v1.37.2:
	// pkg/kubelet/apis/config/v1beta1/defaults.go, NodeLeaseDurationSeconds). It renews four times as often.
	leaseDuration = 40 * time.Second
	// silentFor is how often a node whose kubelet is not heard of is looked at.
	silentFor = time.Minute
)

// Heartbeats are the renewals of a node's Lease, as one leader has seen them. That a Node is Ready proves nothing of its kubelet
// while no node controller runs.
type Heartbeats struct {
	// renewed is the time in the Lease, by the node's clock. It is only compared with itself.
	renewed time.Time
	// seen is when that time was first read, and Since from when on no gap was seen; zero: no renewal was seen yet. Both by the leader's clock.
	seen, Since time.Time
}

// See what the Lease says now: when it was renewed, and for how long; zero if there is none.
func (h Heartbeats) See(renewed time.Time, lasts time.Duration, now time.Time) Heartbeats {
	gap := now.Sub(h.seen) > max(lasts, leaseDuration)+ReadLeasesEvery
	switch {
	case h.seen.IsZero():
		return Heartbeats{renewed: renewed, seen: now}
	case renewed.IsZero() || renewed.Equal(h.renewed):
		if gap {
			h.Since = time.Time{}
		}
		return h
	case gap || h.Since.IsZero():
		h.Since = now
	}
	h.renewed, h.seen = renewed, now
	return h
}

// AwaitsHeartbeats reports whether containers of before may still write on a node that is back: its volumes are held until its kubelet
// has been in touch with the API server for long enough to end them.
func (f Facts) AwaitsHeartbeats() bool {
	return f.working() && slices.ContainsFunc(f.Spec.Volumes, func(v v1alpha1.HeldVolume) bool { return v.Until != nil })
}

// untilGraceIsOver is how much longer the old containers of a volume have; 0: it is over.
func (f Facts) untilGraceIsOver(v v1alpha1.HeldVolume) time.Duration {
	left := max(0, v.Until.Sub(f.Now))
	if f.HeardSince.IsZero() {
		return max(left, silentFor)
	}
	return max(left, f.HeardSince.Add(endsWithin).Sub(f.Now))
}

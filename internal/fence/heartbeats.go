package fence

import (
	"slices"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

const (
	// lookForHeartbeat is how often the Lease of a node is read whose old containers have to end.
	lookForHeartbeat = 20 * time.Second
	// heartbeatGap is the longest time between two renewals of a kubelet that is in touch with the API server. A kubelet renews its
	// Lease every ten seconds, and is taken for silent after forty (v1.37.2: pkg/kubelet/apis/config/v1beta1/defaults.go, NodeLeaseDurationSeconds).
	heartbeatGap = 40 * time.Second
)

// Heartbeats are the renewals of a node's Lease, as one leader has seen them. That a Node is Ready proves nothing of its kubelet
// while no node controller runs.
type Heartbeats struct {
	// renewed is the time in the Lease, by the node's clock. It is only compared with itself.
	renewed time.Time
	// seen is when that time was first read, and Since from when on no gap was seen; zero: no renewal was seen yet. Both by the leader's clock.
	seen, Since time.Time
}

// See what the Lease says now; zero if there is none.
func (h Heartbeats) See(renewed, now time.Time) Heartbeats {
	gap := now.Sub(h.seen) > heartbeatGap
	switch {
	case h.seen.IsZero():
		return Heartbeats{renewed: renewed, seen: now}
	case renewed.Equal(h.renewed):
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

// isGraceOver reports whether the old containers of a volume have had their time.
func (f Facts) isGraceOver(v v1alpha1.HeldVolume) bool {
	return !f.Now.Before(v.Until.Time) && !f.HeardSince.IsZero() && f.Now.Sub(f.HeardSince) >= endsWithin
}

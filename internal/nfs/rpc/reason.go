package rpc

import "slices"

// Reason is the outcome of a probe in one word.
type Reason string

// The reasons, from best to worst. A probe with several findings has the worst one's reason.
const (
	// Serving: every version and share was found.
	Serving Reason = "Serving"
	// Grace: the server recovers state after a restart (NFS4ERR_GRACE); clients wait and go on.
	Grace Reason = "Grace"
	// Busy: the server asks to try later (NFS4ERR_DELAY, NFS3ERR_JUKEBOX).
	Busy Reason = "Busy"
	// MinorVersion: version 4 is served, but not 4.0, so shares can't be looked up (NFS4ERR_MINOR_VERS_MISMATCH).
	MinorVersion Reason = "MinorVersion"
	// Unchecked: the server answers, and the probe has no means to look the share up.
	Unchecked Reason = "Unchecked"
	// Denied: the server answers, and the prober may not look. Clients may be allowed to.
	Denied Reason = "Denied"

	// Canceled: the caller ended the probe.
	Canceled Reason = "Canceled"
	// Invalid: the target can't be probed; see Target.Validate.
	Invalid Reason = "Invalid"
	// Local: the prober's own machine failed (no file descriptors, ports or permission to connect).
	Local Reason = "Local"

	// Failing: the server answers with an error of its own (I/O error, server fault).
	Failing Reason = "Failing"
	// ExportGone: the server answers, and a share is not exported there, or its handle is stale. Servers that hide
	// shares from those who may not use them look the same (NFS-Ganesha does), so the prober should be allowed to.
	ExportGone Reason = "ExportGone"
	// MountDown: NFS answers, and its MOUNT service or port mapper (version 3) does not.
	MountDown Reason = "MountDown"
	// WrongVersion: the server answers, and does not serve this version of NFS.
	WrongVersion Reason = "WrongVersion"
	// Malformed: what was received is not a reply of the protocol: another service may have the port.
	Malformed Reason = "Malformed"
	// Closed: the connection was closed or reset before a whole reply.
	Closed Reason = "Closed"
	// Silent: the connection was accepted, and no whole reply came in time: the server hangs or is stopped.
	Silent Reason = "Silent"
	// Refused: nothing listens on the port.
	Refused Reason = "Refused"
	// Unreachable: the network has no way to the address.
	Unreachable Reason = "Unreachable"
	// DialTimeout: no connection in time: the node is down, or packets are dropped.
	DialTimeout Reason = "DialTimeout"
)

// Verdict is what a probe says about the server's health.
type Verdict int

// The verdicts. With Unknown the probe counts neither as success nor as failure.
const (
	Unknown Verdict = iota
	Healthy
	Unhealthy
)

func (v Verdict) String() string { return [...]string{"Unknown", "Healthy", "Unhealthy"}[v] }

var (
	healthy   = []Reason{Serving, Grace, Busy, MinorVersion, Unchecked, Denied}
	unknown   = []Reason{Canceled, Invalid, Local}
	unhealthy = []Reason{Failing, ExportGone, MountDown, WrongVersion, Malformed, Closed, Silent, Refused, Unreachable, DialTimeout}
	ranking   = slices.Concat(healthy, unknown, unhealthy)
)

// Verdict is Unknown for reasons that are the prober's own.
func (r Reason) Verdict() Verdict {
	switch {
	case slices.Contains(healthy, r):
		return Healthy
	case slices.Contains(unhealthy, r):
		return Unhealthy
	}
	return Unknown
}

// rank orders reasons from best to worst.
func (r Reason) rank() int { return slices.Index(ranking, r) }

package rwx

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
)

// NetworkNamespace is one network namespace of a client pod. NFS mounts die with it.
type NetworkNamespace struct {
	// Identity has a digest of each address in the namespace, joined by dots.
	Identity string `json:"identity"`
	// Since is when the namespace began, to the second. All mounts in it are from Since or later.
	Since time.Time `json:"since"`
	// Made as in Sandbox.
	Made time.Time `json:"made,omitzero"`
	// Noted is when the namespace was in use at the latest, by the API server's clock: pods that were created later have mounted in it.
	Noted time.Time `json:"noted,omitzero"`
	// Behind is how far the node's clock was behind the API server's when the client began, at least. It is not recorded.
	Behind time.Duration `json:"-"`
	// Boot is the boot ID of the node. The node has not rebooted since Booted.
	Boot   string    `json:"boot,omitempty"`
	Booted time.Time `json:"booted,omitzero"`
}

// Sandbox has the fields of a pod's status that describe its network namespace.
type Sandbox struct {
	// Identity as in NetworkNamespace.
	Identity string
	// PodStarted is status.startTime: when the kubelet accepted the pod.
	PodStarted time.Time
	// Made is the last transition of condition PodReadyToStartContainers to true:
	// when the kubelet had made the sandbox. Zero on Kubernetes before 1.29, which has no such condition.
	Made time.Time
	// ContainersStarted is when the first running container started.
	ContainersStarted time.Time
}

// Namespace returns the current network namespace of the pod. recorded is the last
// known one of the same pod, or zero.
//
// The condition shows a new sandbox. A fast or old kubelet may not show it: then the addresses are
// new, and all containers have restarted. Without both, mounts live on.
func (s Sandbox) Namespace(recorded NetworkNamespace) NetworkNamespace {
	since := s.Made
	if since.IsZero() {
		since = s.PodStarted
	} else if !s.ContainersStarted.IsZero() && s.ContainersStarted.Before(since) {
		// The condition is written late. The first container starts closer to the sandbox,
		// and the client mounts nothing before.
		since = s.ContainersStarted
	}
	if recorded.Identity == "" {
		return NetworkNamespace{Identity: s.Identity, Since: since, Made: s.Made}
	}
	if recorded.Made.IsZero() || !s.Made.After(recorded.Made) {
		since = recorded.Since // the condition shows no new sandbox
	}
	if !recorded.Has(s.Identity) && s.ContainersStarted.After(recorded.Since) {
		since = later(since, s.ContainersStarted)
	}
	return NetworkNamespace{Identity: s.Identity, Since: later(since, recorded.Since), Made: later(s.Made, recorded.Made)}
}

// Known adds what is known of the namespace of a client: when it was noted, and its node's clock.
func (c Client) Known(n NetworkNamespace) NetworkNamespace {
	if n.Since.Truncate(time.Second).Equal(c.Recorded.Since) {
		n.Noted = c.Recorded.Noted
	}
	if n.Since.Sub(c.Sandbox.PodStarted) < clockStep { // else the clock may have been set between the pod's sandboxes
		n.Behind = behind(c.Created, c.Sandbox.PodStarted)
	}
	return n
}

// In returns the namespace in a boot of its node. recorded is as in Sandbox.Namespace. If boot is not
// known, neither is any earlier time of the boot.
func (n NetworkNamespace) In(boot string, recorded NetworkNamespace) NetworkNamespace {
	n.Boot, n.Booted = boot, n.Since
	if boot == recorded.Boot && boot != "" {
		n.Booted = recorded.Booted
	}
	return n
}

// behind is how far a node's clock was behind the API server's when its kubelet accepted a pod, at least.
func behind(created, began time.Time) time.Duration {
	if created.IsZero() || began.IsZero() {
		return 0
	}
	return max(0, created.Sub(began))
}

// clockStep is the smallest step of a node's clock that is noticed.
const clockStep = time.Minute

// clockChanged reports whether the node's clock was set between the start of a pod and of the client, or of the pod's sandbox: then
// its times show no order.
func (n NetworkNamespace) clockChanged(w Workload) bool {
	return (behind(w.Created, w.Began)-n.Behind).Abs() > clockStep || !w.Mounted.IsZero() && w.Mounted.Before(w.Began)
}

// followsAny reports whether the namespace began after any of the times, with no reboot in between.
func (n NetworkNamespace) followsAny(times []time.Time) bool {
	return slices.ContainsFunc(times, func(at time.Time) bool { return !at.Before(n.Booted) && at.Before(n.Since) })
}

// Has reports whether the addresses may be those of the namespace. A running pod may gain or lose an
// interface, and keeps the others.
func (n NetworkNamespace) Has(identity string) bool {
	more, fewer := strings.Split(n.Identity, "."), strings.Split(identity, ".")
	if len(more) < len(fewer) {
		more, fewer = fewer, more
	}
	return !slices.ContainsFunc(fewer, func(address string) bool { return !slices.Contains(more, address) })
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// String is JSON for an annotation; "" is none.
func (n NetworkNamespace) String() string {
	if n.Identity == "" {
		return ""
	}
	for _, at := range []*time.Time{&n.Since, &n.Made, &n.Noted, &n.Booted} {
		*at = at.UTC().Truncate(time.Second)
	}
	text, err := json.Marshal(n)
	if err != nil {
		return "" // a year that RFC 3339 does not have
	}
	return string(text)
}

// errNotANamespace is returned for text that NetworkNamespace.String does not write.
var errNotANamespace = errors.New("must be JSON with identity and since")

// ParseNetworkNamespace reads what NetworkNamespace.String writes.
func ParseNetworkNamespace(text string) (NetworkNamespace, error) {
	if text == "" {
		return NetworkNamespace{}, nil
	}
	var n NetworkNamespace
	if err := json.Unmarshal([]byte(text), &n); err != nil || n.Identity == "" {
		return NetworkNamespace{}, errNotANamespace
	}
	return n, nil
}

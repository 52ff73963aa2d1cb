package storage

import (
	"errors"
	"strings"
	"time"
)

// NetworkNamespace is one network namespace of a client pod: what its NFS
// mounts live and die with.
type NetworkNamespace struct {
	// Identity tells this namespace from another of the same pod: a digest of the
	// addresses in it.
	Identity string
	// Since is when it began, to the second. What the client mounted in it, it
	// mounted at Since or later.
	Since time.Time
}

// Sandbox is what a pod's status tells of its network namespace.
type Sandbox struct {
	// Identity as in NetworkNamespace.
	Identity string
	// PodStarted is status.startTime: when the kubelet took the pod on.
	PodStarted time.Time
	// Made is the last transition of condition PodReadyToStartContainers to true:
	// when the kubelet had made the sandbox. Zero on Kubernetes before 1.29, which has no such condition.
	Made time.Time
	// ContainersStarted is when the first of the containers that run now was started.
	ContainersStarted time.Time
}

// Namespace returns the network namespace that the pod has now. recorded is
// the one that was seen last, for the same pod; its zero value is none.
//
// A new sandbox shows in the condition. A kubelet that is quick, or old, may not
// show it there; then the addresses have changed, and every container was
// started anew. A container that crashed alone, or an interface that was added
// to the running pod, is no new sandbox: mounts go on living.
func (s Sandbox) Namespace(recorded NetworkNamespace) NetworkNamespace {
	since := s.Made
	if since.IsZero() {
		since = s.PodStarted
	} else if !s.ContainersStarted.IsZero() && s.ContainersStarted.Before(since) {
		// The condition is written down a moment after the fact; the runtime's own
		// clock is closer, and nothing is mounted before the first container runs.
		since = s.ContainersStarted
	}
	if recorded.Identity != "" {
		if recorded.Identity != s.Identity && s.ContainersStarted.After(recorded.Since) {
			since = later(since, s.ContainersStarted)
		}
		since = later(since, recorded.Since)
	}
	return NetworkNamespace{Identity: s.Identity, Since: since}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// String is <since>/<identity>, for an annotation; "" is none.
func (n NetworkNamespace) String() string {
	if n.Identity == "" {
		return ""
	}
	return n.Since.UTC().Format(time.RFC3339) + "/" + n.Identity
}

// ErrNotANamespace is returned for text that NetworkNamespace.String does not write.
var ErrNotANamespace = errors.New("must be <time>/<identity>")

// ParseNetworkNamespace reads what NetworkNamespace.String writes.
func ParseNetworkNamespace(text string) (NetworkNamespace, error) {
	if text == "" {
		return NetworkNamespace{}, nil
	}
	since, identity, _ := strings.Cut(text, "/")
	at, err := time.Parse(time.RFC3339, since)
	if err != nil || identity == "" {
		return NetworkNamespace{}, ErrNotANamespace
	}
	return NetworkNamespace{Identity: identity, Since: at}, nil
}

package storage

import (
	"errors"
	"strings"
	"time"
)

// NetworkNamespace is one network namespace of a client pod. NFS mounts die with it.
type NetworkNamespace struct {
	// Identity is a digest of the addresses in the namespace.
	Identity string
	// Since is when the namespace began, to the second. All mounts in it are from Since or later.
	Since time.Time
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
// new, and all containers have restarted. A crash of one container, or a new interface on the
// running pod, is no new sandbox: mounts live on.
func (s Sandbox) Namespace(recorded NetworkNamespace) NetworkNamespace {
	since := s.Made
	if since.IsZero() {
		since = s.PodStarted
	} else if !s.ContainersStarted.IsZero() && s.ContainersStarted.Before(since) {
		// The condition is written late. The first container starts closer to the sandbox,
		// and the client mounts nothing before.
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

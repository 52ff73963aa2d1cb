package rwx

import (
	"github.com/fairlead-io/fairlead/internal/multus"
)

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Restarts says which workloads may be restarted.
type Restarts struct {
	// Driver is the CSI driver of Longhorn.
	Driver string
	// Enabled: the setting auto-delete-pod-when-volume-detached-unexpectedly is on.
	Enabled bool
	// Blacklist are kinds of controllers, <group>/<Kind>, whose pods are left alone.
	Blacklist []string
	// Applied is the network that clients are on, as it is applied; zero is the cluster network.
	Applied multus.Attachment
	// Mounting says where clients mount volumes.
	Mounting Mounting
	// Paused: no workload is restarted until an operator says so.
	Paused bool
	// DeadMounts are looked for.
	DeadMounts bool
	// OnRequest: the storage system's requests to remount are answered.
	OnRequest bool
	Now       time.Time
}

// DeadMount is a workload pod with dead mounts that is not restarted.
type DeadMount struct {
	// Pod is namespace/name.
	Pod, UID, Node string
	Volumes        []string
	// Reason why the pod is not restarted, one of the reasons of verdicts. Message says more, and what to do.
	Reason  string
	Message string
}

// MountState says what is known of a workload's mounts.
type MountState string

// States of mounts.
const (
	// NotOurs: no mount of the pod dies with a client.
	NotOurs MountState = "not ours"
	// NotYet: not known to be mounted; judged again later.
	NotYet MountState = "not mounted yet"
	Alive  MountState = "alive"
	// Unsure: the time or the namespace of the mount is not known.
	Unsure MountState = "unsure"
	// Dead mounts were made in a network namespace that is gone, or from an address that the server has no more.
	Dead MountState = "dead"
)

// Verdict on one workload.
type Verdict struct {
	State MountState
	// Restart the workload. If a dead mount is not restarted, Reason says why.
	Restart bool
	// Reason in a few words, the same for all pods: a metric label.
	Reason string
	// Detail is a sentence for people.
	Detail string
	// After is when to judge again without an event; 0 is never.
	After time.Duration
}

// Reasons of verdicts.
const (
	ReasonTerminating      = "already terminating"
	ReasonOtherDriver      = "volume of another driver"
	ReasonNotShared        = "not an RWX volume"
	ReasonMigratable       = "migratable volume"
	ReasonClusterNetwork   = "volume on the cluster network"
	ReasonNotApplied       = "network not applied"
	ReasonNotStarted       = "no container has started yet"
	ReasonStartedAfter     = "started after the client"
	ReasonStartedAbout     = "started about when the client did"
	ReasonClockChanged     = "node's clock was set"
	ReasonRestarted        = "restarted since it was mounted"
	ReasonPlaceNotKnown    = "place of the mount not known"
	ReasonPaused           = "restarts paused"
	ReasonNoController     = "no controller"
	ReasonOff              = "setting off"
	ReasonBlacklisted      = "kind blacklisted"
	ReasonLeftAlone        = "opted out"
	ReasonDeadMount        = "dead mount"
	ReasonServerMoved      = "server moved"
	ReasonRemountRequested = "remount requested"
	ReasonNotRequested     = "no remount requested"
	// Of the API server, when it refuses an eviction.
	ReasonBudget  = "disruption budget"
	ReasonRefused = "eviction refused"
)

// remountDelay makes one restart of several requests in quick succession:
// remountRequestDelayDuration of longhorn-manager.
const remountDelay = 5 * time.Second

// startingUp is the delay until a pod without mounts is judged again.
const startingUp = 5 * time.Second

// Judge decides about one workload on a node whose Ready client has the network namespace. A mount
// is dead if it was made in an earlier network namespace of a client, whether that client was
// deleted, force-deleted, crashed, or got a new sandbox; or if the server has moved away from the address that was mounted.
//
// Source: proposal "Storage Network For RWX Volume", Kubernetes Pod Controller;
// the auto-delete settings are Longhorn's.
func Judge(w Workload, namespace NetworkNamespace, r Restarts) Verdict {
	if w.Terminating {
		return Verdict{State: NotOurs, Reason: ReasonTerminating}
	}
	if volume, after := requested(w, r); volume != "" {
		return r.restart(w, Verdict{State: Dead, Reason: ReasonRemountRequested, After: after,
			Detail: fmt.Sprintf("the storage system asks to mount volume %s again", volume)})
	}
	if !r.DeadMounts {
		return Verdict{State: NotOurs, Reason: ReasonNotRequested}
	}
	m, moved := movedAway(w, r)
	detail := fmt.Sprintf("volume %s was mounted before its server moved from %s to %s", m.Volume, m.ServerMove.From, m.ServerMove.To)
	if moved && !m.ServerMove.Unsure {
		return r.restart(w, Verdict{State: Dead, Reason: ReasonServerMoved, Detail: detail + ": its NFS mount does not answer"})
	}
	v := r.judgeClient(w, namespace)
	if moved && v.State != Dead {
		return Verdict{State: Unsure, Reason: ReasonRestarted, Detail: detail + "; the pod has restarted since, and keeps that mount unless its node rebooted; if it does not answer, delete the pod"}
	}
	return v
}

// judgeClient judges the end of a mount that is the client.
func (r Restarts) judgeClient(w Workload, namespace NetworkNamespace) Verdict {
	affected := affectedMounts(w, r)
	began := namespace.Since.UTC().Format(time.RFC3339)
	switch {
	case len(affected.dying)+len(affected.unsure) == 0:
		return Verdict{State: NotOurs, Reason: affected.reason}
	case !namespace.Noted.IsZero() && w.Created.After(namespace.Noted):
		return Verdict{State: Alive, Reason: ReasonStartedAfter}
	case namespace.clockChanged(w):
		return Verdict{State: Unsure, Reason: ReasonClockChanged, Detail: fmt.Sprintf(
			"whether volume %s was mounted before the network of the CSI plugin pod on its node was recreated can't be told: the node's clock was set in between; if the volume does not answer, delete the pod",
			strings.Join(slices.Concat(affected.dying, affected.unsure), ", "))}
	case w.Began.After(namespace.Since):
		return Verdict{State: Alive, Reason: ReasonStartedAfter}
	case w.Mounted.IsZero():
		return Verdict{State: NotYet, Reason: ReasonNotStarted, After: startingUp}
	case w.Mounted.Before(namespace.Since) && len(affected.dying) > 0:
		return r.restart(w, Verdict{State: Dead, Reason: ReasonDeadMount, Detail: fmt.Sprintf(
			"volume %s was mounted before %s, when the network of the CSI plugin pod on its node was recreated: its NFS mount does not answer",
			strings.Join(affected.dying, ", "), began)})
	case w.Restarted && !w.Mounted.Before(namespace.Since) && !namespace.followsAny(w.Starts):
		return Verdict{State: Alive, Reason: ReasonStartedAfter}
	case len(affected.dying) == 0:
		return Verdict{State: Unsure, Reason: ReasonPlaceNotKnown, Detail: fmt.Sprintf(
			"whether volume %s is mounted in the network of the node or of the CSI plugin pod, which was recreated at %s, can't be told; if the volume does not answer, delete the pod",
			strings.Join(affected.unsure, ", "), began)}
	case w.Restarted && namespace.followsAny(w.Starts):
		// A new sandbox keeps the mounts. Only a restarted kubelet may have mounted the volumes again, and the API does not show this.
		return Verdict{State: Unsure, Reason: ReasonRestarted, Detail: fmt.Sprintf(
			"volume %s was mounted before %s, when the network of the CSI plugin pod on its node was recreated; the pod has restarted since, and keeps that mount unless the kubelet restarted too; if it does not answer, delete the pod",
			strings.Join(affected.dying, ", "), began)}
	}
	return Verdict{State: Unsure, Reason: ReasonStartedAbout, Detail: fmt.Sprintf(
		"volume %s was mounted about %s, when the network of the CSI plugin pod on its node was recreated; if it does not answer, delete the pod",
		strings.Join(affected.dying, ", "), began)}
}

// restart decides whether the pod may be restarted, and why not.
func (r Restarts) restart(w Workload, v Verdict) Verdict {
	refuse := func(reason, why string) Verdict {
		v.Reason, v.Detail, v.After = reason, v.Detail+"; "+why, 0
		return v
	}
	switch {
	case w.Owner.IsZero():
		return refuse(ReasonNoController, "the pod has no controller that would recreate it: delete and create it yourself")
	case !r.Enabled:
		return refuse(ReasonOff, "setting auto-delete-pod-when-volume-detached-unexpectedly is off: delete the pod, or turn it on")
	case slices.Contains(r.Blacklist, w.Owner.GroupKind()):
		return refuse(ReasonBlacklisted, fmt.Sprintf("%s is in blacklist-for-auto-delete-pod-when-volume-detached-unexpectedly: delete the pod yourself", w.Owner.GroupKind()))
	case w.OptOut:
		return refuse(ReasonLeftAlone, fmt.Sprintf("annotation %s keeps Fairlead off: delete the pod yourself", OptOutAnnotation))
	case r.Paused:
		return refuse(ReasonPaused, fmt.Sprintf("restarts are paused: remove annotation %s from the NetworkRollout, or delete the pod yourself", RestartsAnnotation))
	}
	v.Restart = v.After == 0
	return v
}

// affected are the volumes of a workload that depend on the network namespace of its client.
type affected struct {
	// dying are the volumes whose mounts die, unsure those whose mounts may.
	dying, unsure []string
	// reason why there is neither.
	reason string
}

func affectedMounts(w Workload, r Restarts) affected {
	s := affected{reason: ReasonOtherDriver}
	for _, m := range w.Mounts {
		switch {
		case m.Driver != r.Driver:
			continue
		case m.Migratable:
			s.reason = ReasonMigratable
			continue
		case !m.Shared:
			s.reason = ReasonNotShared
			continue
		}
		switch effect, reason := r.effectOn(m, w); effect {
		case dies:
			s.dying = append(s.dying, m.Volume)
		case mayDie:
			s.unsure = append(s.unsure, m.Volume)
		default:
			s.reason = reason
		}
	}
	for _, volumes := range []*[]string{&s.dying, &s.unsure} {
		slices.Sort(*volumes)
		*volumes = slices.Compact(*volumes)
	}
	return s
}

// effectOn returns what a new network namespace of the client does to one mount, and the reason if the mount survives.
func (r Restarts) effectOn(m Mount, w Workload) (effect, string) {
	switch {
	case m.Network.IsZero():
		return r.Mounting.effectOnClusterNetwork(w), ReasonClusterNetwork
	case r.Applied.IsZero():
		return survives, ReasonNotApplied
	}
	return r.Mounting.effectOnNetwork(w), ""
}

// Lost returns the volumes of a workload that Judge finds dead.
func Lost(w Workload, r Restarts) []string {
	if volume, _ := requested(w, r); volume != "" {
		return []string{volume}
	}
	if m, moved := movedAway(w, r); moved {
		return []string{m.Volume}
	}
	return affectedMounts(w, r).dying
}

// movedAway is a mount of a workload whose server has moved, if possible one that is surely dead.
func movedAway(w Workload, r Restarts) (moved Mount, found bool) {
	for _, m := range w.Mounts {
		if m.Driver != r.Driver || !m.Shared || m.Migratable || m.ServerMove.IsZero() {
			continue
		}
		if !m.ServerMove.Unsure {
			return m, true
		}
		moved, found = m, true
	}
	return moved, found
}

// requested is the volume that the storage system asks to mount again, and the remaining delay. As in
// Longhorn, the pod began before the request; the access mode does not matter.
func requested(w Workload, r Restarts) (volume string, after time.Duration) {
	if !r.OnRequest || w.Began.IsZero() {
		return "", 0
	}
	for _, m := range w.Mounts {
		if m.Driver == r.Driver && w.Began.Before(m.RemountRequested) {
			return m.Volume, max(0, m.RemountRequested.Add(remountDelay).Sub(r.Now))
		}
	}
	return "", 0
}

// GroupKind is <group>/<Kind>, as Longhorn's blacklist has it; the core group is "".
func (o Owner) GroupKind() string {
	group, _, found := strings.Cut(o.APIVersion, "/")
	if !found {
		group = "" // "v1"
	}
	return group + "/" + o.Kind
}

package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/internal/rwx"
)

// BlockerKind is the kind of a Blocker.
type BlockerKind string

// Kinds of blockers.
const (
	BlockedByVolume    BlockerKind = "Volume"
	BlockedByServer    BlockerKind = "Server"
	BlockedByService   BlockerKind = "Service"
	BlockedByClient    BlockerKind = "Client"
	BlockedByDaemonSet BlockerKind = "DaemonSet"
	BlockedByTime      BlockerKind = "Time"
	BlockedByNetwork   BlockerKind = "Network"
	BlockedByRequest   BlockerKind = "Request"
	// BlockedByNode: the node, or no node, meets the requirements of a pod.
	BlockedByNode BlockerKind = "Node"
	// BlockedByClass: the priority class does not exist.
	BlockedByClass BlockerKind = "PriorityClass"
	// BlockedByComponent: a pod or template of the storage system.
	BlockedByComponent BlockerKind = "Component"
	// BlockedByOther: another writer reverts the change of a component.
	BlockedByOther BlockerKind = "Conflict"
)

// Names of blockers of kind Time: the fields of the configuration.
const (
	TimeOfWindows = "maintenanceWindows"
	TimeOfSettle  = "networks.settle"
)

// RWXVolume is the noun of a shared volume in messages.
const RWXVolume = "RWX volume"

// Blocker is an object that keeps a setting from being applied.
type Blocker struct {
	Kind      BlockerKind
	Name      string
	Nodes     []string
	Workloads []string
	// Owners to stop, so that the workloads stop: namespace/kind/name.
	Owners []string
	// Noun of the volume; "" is an RWX volume.
	Noun string
	// Message says why the object blocks and what to do.
	Message string
}

// AttachedVolume blocks what needs the volume detached. The noun is empty for an RWX volume.
func AttachedVolume(v rwx.Volume, noun string) Blocker {
	message := cmp.Or(noun, RWXVolume) + " is attached: stop the workloads that use it, so that it is detached"
	if len(v.Purposes) > 0 {
		message = fmt.Sprintf("%s is attached by the storage system for %s: it is detached once that has ended", cmp.Or(noun, RWXVolume), strings.Join(v.Purposes, ", "))
	}
	if len(v.OtherClaims) > 0 {
		message += "; pods may use it by claim " + strings.Join(v.OtherClaims, ", ") + ", too"
	}
	return Blocker{Kind: BlockedByVolume, Name: v.Name, Nodes: v.Nodes, Workloads: v.Workloads, Owners: v.Owners, Noun: noun, Message: message}
}

// SharedVolumeGate returns the attached non-migratable RWX volumes, which block the network of shared volumes.
// The open gate authorises restarts of client pods and creation of server pods, but no restart of instance managers.
func SharedVolumeGate(volumes []rwx.Volume) []Blocker {
	var blockers []Blocker
	for _, v := range volumes {
		if v.Shared && v.Attached {
			blockers = append(blockers, AttachedVolume(v, ""))
		}
	}
	slices.SortFunc(blockers, func(a, b Blocker) int { return strings.Compare(a.Name, b.Name) })
	return blockers
}

// BusyNodes are the attached shared volumes by node: a restart of the client pod there could hurt a mount.
// everywhere has the attached volumes without known nodes.
func BusyNodes(volumes []rwx.Volume) (nodes map[string][]string, everywhere []string) {
	nodes = map[string][]string{}
	for _, v := range volumes {
		if !v.Shared || !v.Attached {
			continue
		}
		if len(v.Nodes) == 0 {
			everywhere = append(everywhere, v.Name)
		}
		for _, node := range v.Nodes {
			nodes[node] = append(nodes[node], v.Name)
		}
	}
	return nodes, everywhere
}

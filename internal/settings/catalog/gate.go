package catalog

import (
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/internal/storage"
)

// BlockerKind says what kind of thing blocks.
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
	// BlockedByNode: no node is as it takes.
	BlockedByNode BlockerKind = "Node"
	// BlockedByClass: a priority class that does not exist.
	BlockedByClass BlockerKind = "PriorityClass"
	// BlockedByComponent: a pod or template of the storage system.
	BlockedByComponent BlockerKind = "Component"
	// BlockedByOther: somebody else writes a component otherwise.
	BlockedByOther BlockerKind = "Conflict"
)

// Blocker is one concrete thing that keeps a setting from being applied.
type Blocker struct {
	Kind      BlockerKind
	Name      string
	Nodes     []string
	Workloads []string
	// Noun of a volume that blocks, where it is not an RWX volume.
	Noun string
	// Message says why it blocks and what to do.
	Message string
}

// SharedVolumeGate is the gate of the settings that choose the network of
// shared volumes: no non-migratable RWX volume is attached. It opens nothing
// but the restart of client pods and the making of server pods; instance
// managers have a gate of their own.
func SharedVolumeGate(volumes []storage.Volume) []Blocker {
	var blockers []Blocker
	for _, v := range volumes {
		if v.Shared && v.Attached {
			blockers = append(blockers, Blocker{
				Kind: BlockedByVolume, Name: v.Name, Nodes: v.Nodes, Workloads: v.Workloads,
				Message: "RWX volume is attached: stop the workloads that use it, so that it is detached",
			})
		}
	}
	slices.SortFunc(blockers, func(a, b Blocker) int { return strings.Compare(a.Name, b.Name) })
	return blockers
}

// BusyNodes are the nodes where a restart of the client pod could hurt a mount.
// everywhere is true when an attached shared volume does not say where.
func BusyNodes(volumes []storage.Volume) (nodes map[string][]string, everywhere []string) {
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

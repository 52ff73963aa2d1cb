package components

import (
	"maps"
	"slices"

	"github.com/fairlead-io/fairlead/internal/longhorn"
)

// Instances are the engines and replicas that run or are about to run. Longhorn reports them twice: in
// the status of an instance manager, and in Engine and Replica objects, which are written before an
// instance starts. Each source alone makes an instance manager count as used: a gate then waits.
type Instances struct {
	byManager map[string][]string
	byPlace   map[place][]string
	managers  map[string]place
}

// place is all instance managers of one data engine on one node.
type place struct{ node, engine string }

// NewInstances of these instance managers. Add fills in the objects.
func NewInstances(managers []longhorn.InstanceManager) Instances {
	i := Instances{map[string][]string{}, map[place][]string{}, make(map[string]place, len(managers))}
	for m := range managers {
		i.managers[managers[m].Name] = place{managers[m].Spec.NodeID, managers[m].Spec.Engine()}
	}
	return i
}

// Add an Engine or Replica.
func (i *Instances) Add(name string, spec *longhorn.InstanceSpec, status *longhorn.InstanceStatus) {
	neverStarted := status.CurrentState == ""
	if spec.DesireState != longhorn.InstanceRunning && (neverStarted || isStopped(status.CurrentState)) {
		return
	}
	manager, at := status.InstanceManagerName, place{spec.NodeID, spec.Engine()}
	// After an upgrade a node has two instance managers: the old one keeps its instances. An instance
	// counts for both, unless it names one that exists. While it detaches, it has no node but may run.
	if runsIn, exists := i.managers[manager]; spec.NodeID != "" && (!exists || runsIn != at) {
		i.byPlace[at] = append(i.byPlace[at], name)
	}
	if manager != "" {
		i.byManager[manager] = append(i.byManager[manager], name)
	}
}

// In returns the names of the instances and backing images that use the instance manager, each once.
func (i *Instances) In(m *longhorn.InstanceManager, name, node, engine string) []string {
	names := slices.Concat(i.byManager[name], i.byPlace[place{node, engine}])
	for _, reported := range m.Status.Reported() {
		for name, instance := range reported {
			if !isStopped(instance.Status.State) {
				names = append(names, name)
			}
		}
	}
	for image, copied := range m.Status.BackingImages {
		if isWritten(copied.State) {
			names = append(names, image)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Instance is one process in an instance manager, and its volume.
type Instance struct{ Name, Volume string }

// RunningInstances that the instance manager reports, engines first and shards last. Longhorn's own controller of
// instance managers decides by the same two states.
func RunningInstances(m *longhorn.InstanceManager) []Instance {
	isRunning := func(state string) bool {
		return state == longhorn.InstanceRunning || state == longhorn.InstanceStarting
	}
	var running []Instance
	for _, reported := range m.Status.Reported() {
		running = append(running, instancesOf(reported, longhorn.VolumeOfInstance, isRunning)...)
	}
	return append(running, shards(m, isRunning)...)
}

// Shards and shard groups that may run in the instance manager. They run on while their volume is detached (longhorn-manager
// v1.12.1, ShardGroupSpec.NodeID), and are in use only while the volume is not.
func Shards(m *longhorn.InstanceManager) []Instance {
	return shards(m, func(state string) bool { return !isStopped(state) })
}

func shards(m *longhorn.InstanceManager, in func(state string) bool) []Instance {
	groups := instancesOf(m.Status.InstanceShardGroups, func(name string) string { return name }, in)
	return append(groups, instancesOf(m.Status.InstanceShards, longhorn.VolumeOfShard, in)...)
}

// instancesOf a kind in a state, by name.
func instancesOf(reported map[string]longhorn.InstanceProcess, volumeOf func(name string) string, in func(state string) bool) []Instance {
	var found []Instance
	for _, name := range slices.Sorted(maps.Keys(reported)) {
		if in(reported[name].Status.State) {
			found = append(found, Instance{name, volumeOf(name)})
		}
	}
	return found
}

// FilesInUse are written, or sent to another node. A restart of the pod would begin again.
func FilesInUse(m *longhorn.BackingImageManager) []string {
	var names []string
	for name, file := range m.Status.BackingImageFileMap {
		if file.SendingReference > 0 || isWritten(file.State) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// isStopped: an unknown state may be a running one.
func isStopped(state string) bool {
	return state == longhorn.InstanceStopped || state == longhorn.InstanceTerminated || state == longhorn.InstanceError
}

func isWritten(state string) bool {
	return state == longhorn.FilePending || state == longhorn.FileStarting || state == longhorn.FileInProgress
}

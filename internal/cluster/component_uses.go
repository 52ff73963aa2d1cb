package cluster

import (
	"context"
	"slices"

	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// instances says what runs in instance managers, or is about to. Longhorn says
// so twice: in what an instance manager reports, and in the engines and replicas
// themselves, which are written before an instance is started. Where they
// disagree an instance manager is in use: that can only make a gate wait.
type instances struct {
	byManager map[string][]string
	byPlace   map[place][]string
	// managers there are, and where.
	managers map[string]place
}

// place is where an instance runs: the instance managers of one data engine on a node.
type place struct{ node, engine string }

func (r *Reader) instances(ctx context.Context, managers []longhorn.InstanceManager) (instances, error) {
	found := instances{map[string][]string{}, map[place][]string{}, make(map[string]place, len(managers))}
	if r.announces {
		return found, nil
	}
	for i := range managers {
		m := &managers[i]
		found.managers[m.Name] = place{m.Spec.NodeID, m.Spec.Engine()}
	}
	err := eachHere(ctx, r, &longhorn.EngineList{}, "engines", func(e *longhorn.Engine) { found.add(e.Name, &e.Spec, &e.Status) })
	if err != nil {
		return found, err
	}
	err = eachHere(ctx, r, &longhorn.ReplicaList{}, "replicas", func(replica *longhorn.Replica) { found.add(replica.Name, &replica.Spec, &replica.Status) })
	if err != nil {
		return found, err
	}
	return found, nil
}

// InstanceManagerUses reads once more what an instance manager is used by.
func (r *Reader) InstanceManagerUses(ctx context.Context, c catalog.Component) ([]string, error) {
	var managers longhorn.InstanceManagerList
	if err := r.listHere(ctx, &managers, "instance managers"); err != nil {
		return nil, err
	}
	// Last what is written first.
	instances, err := r.instances(ctx, managers.Items)
	if err != nil {
		return nil, err
	}
	manager := &longhorn.InstanceManager{} // one on its way out says nothing
	if i := slices.IndexFunc(managers.Items, func(m longhorn.InstanceManager) bool { return m.Name == c.Name }); i >= 0 {
		manager = &managers.Items[i]
	}
	return instances.in(manager, c.Name, c.Node, c.Engine), nil
}

func (u *instances) add(name string, spec *longhorn.InstanceSpec, status *longhorn.InstanceStatus) {
	// One that was never started has no state.
	if spec.DesireState != longhorn.InstanceRunning && (status.CurrentState == "" || surelyStopped(status.CurrentState)) {
		return
	}
	manager := status.InstanceManagerName
	at := place{spec.NodeID, spec.Engine()}
	// One that is being detached is on no node any more, and may still run. Of
	// several instance managers on a node (after an upgrade the old one runs what it
	// did) it is in the one that it names, if that is there.
	if runsIn, there := u.managers[manager]; spec.NodeID != "" && !(there && runsIn == at) {
		u.byPlace[at] = append(u.byPlace[at], name)
	}
	if manager != "" {
		u.byManager[manager] = append(u.byManager[manager], name)
	}
}

// in are the names of what an instance manager is used by, each once.
func (u *instances) in(m *longhorn.InstanceManager, name, node, engine string) []string {
	names := slices.Concat(u.byManager[name], u.byPlace[place{node, engine}])
	for _, reported := range []map[string]longhorn.InstanceProcess{
		m.Status.InstanceEngines, m.Status.InstanceEngineFrontends, m.Status.InstanceReplicas, m.Status.Instances,
	} {
		for name, process := range reported {
			if !surelyStopped(process.Status.State) {
				names = append(names, name)
			}
		}
	}
	for image, copied := range m.Status.BackingImages {
		switch copied.State {
		case longhorn.FilePending, longhorn.FileStarting, longhorn.FileInProgress:
			names = append(names, image)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// surelyStopped: a state that is not known may be a running one.
func surelyStopped(state string) bool {
	return state == longhorn.InstanceStopped || state == longhorn.InstanceTerminated || state == longhorn.InstanceError
}

// filesOnTheirWay are those that are written, or sent to another node: both
// begin anew when the pod is restarted.
func filesOnTheirWay(m *longhorn.BackingImageManager) []string {
	var names []string
	for name, file := range m.Status.BackingImageFileMap {
		switch {
		case file.SendingReference > 0,
			file.State == longhorn.FilePending, file.State == longhorn.FileStarting, file.State == longhorn.FileInProgress:
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

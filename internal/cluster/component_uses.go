package cluster

import (
	"context"
	"slices"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage/longhorn"
	"github.com/fairlead-io/fairlead/internal/storage/longhorn/components"
)

// instances that engines and replicas name. Instance managers report theirs themselves, once these have started.
func (r *Reader) instances(ctx context.Context, managers []longhorn.InstanceManager) (components.Instances, error) {
	found := components.NewInstances(managers)
	err := eachHere(ctx, r, &longhorn.EngineList{}, "engines", func(e *longhorn.Engine) { found.Add(e.Name, &e.Spec, &e.Status) })
	if err != nil {
		return found, err
	}
	err = eachHere(ctx, r, &longhorn.ReplicaList{}, "replicas", func(replica *longhorn.Replica) { found.Add(replica.Name, &replica.Spec, &replica.Status) })
	return found, err
}

// InstanceManagerUses reads the current users of an instance manager.
func (r *Reader) InstanceManagerUses(ctx context.Context, c catalog.Component) ([]string, error) {
	var managers longhorn.InstanceManagerList
	if err := r.listHere(ctx, &managers, "instance managers"); err != nil {
		return nil, err
	}
	// Engines and replicas are written first, so they are read last.
	instances, err := r.instances(ctx, managers.Items)
	if err != nil {
		return nil, err
	}
	manager := &longhorn.InstanceManager{} // a deleted instance manager reports nothing
	if i := slices.IndexFunc(managers.Items, func(m longhorn.InstanceManager) bool { return m.Name == c.Name }); i >= 0 {
		manager = &managers.Items[i]
	}
	return instances.In(manager, c.Name, c.Node, c.Engine), nil
}

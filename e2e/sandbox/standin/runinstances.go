package standin

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/eventually"
)

// startInstances has the engine and the replicas run where there are instance
// managers for them, and waits until they do. A volume without replicas gets its
// engine here.
func (l Longhorn) startInstances(ctx context.Context, volume, node string) error {
	managers, err := l.list(ctx, "InstanceManager")
	if err != nil || len(managers) == 0 {
		return err
	}
	v := l.object("Volume", volume)
	if err := l.client.Get(ctx, client.ObjectKeyFromObject(v), v); err != nil {
		return fmt.Errorf("reading volume %s: %w", volume, err)
	}
	engine := text(v, "spec", "dataEngine")
	if managerOn(managers, node, engine) != nil {
		if err := l.createEngine(ctx, volume, engine); err != nil {
			return err
		}
	}
	return l.setInstances(ctx, volume, func(o *unstructured.Unstructured) map[string]any {
		on := node
		if o.GetKind() == "Replica" {
			on = text(o, "spec", "nodeID")
		}
		if managerOn(managers, on, engine) == nil {
			return nil
		}
		return map[string]any{"nodeID": on, "desireState": stateRunning}
	})
}

// stopInstances ends all that runs of a volume.
func (l Longhorn) stopInstances(ctx context.Context, volume string) error {
	managers, err := l.list(ctx, "InstanceManager")
	if err != nil || len(managers) == 0 {
		return err
	}
	return l.setInstances(ctx, volume, func(o *unstructured.Unstructured) map[string]any {
		spec := map[string]any{"desireState": stateStopped}
		if o.GetKind() == "Engine" {
			spec["nodeID"] = "" // a replica stays where its data is
		}
		return spec
	})
}

// setInstances changes a volume's engine and replicas, and waits until they are so.
func (l Longhorn) setInstances(ctx context.Context, volume string, spec func(*unstructured.Unstructured) map[string]any) error {
	instances, err := l.instances(ctx, client.MatchingLabels{volumeLabel: volume})
	if err != nil {
		return err
	}
	for i := range instances {
		if change := spec(&instances[i]); change != nil {
			if err := l.patch(ctx, &instances[i], map[string]any{"spec": change}); err != nil {
				return err
			}
		}
	}
	return l.waitInstances(ctx, volume)
}

// waitInstances waits until the volume's instances are as they are to be. Those
// of an instance manager whose pod is being made anew are to wait for it.
func (l Longhorn) waitInstances(ctx context.Context, volume string) error {
	return eventually.Until(ctx, "the engine and the replicas of "+volume, time.Minute, func() error {
		if err := l.syncInstances(ctx); err != nil {
			return err
		}
		instances, err := l.instances(ctx, client.MatchingLabels{volumeLabel: volume})
		if err != nil {
			return err
		}
		for i := range instances {
			if o := &instances[i]; text(o, "status", "currentState") != wantedState(o) {
				return fmt.Errorf("%s is %s: %w", o.GetName(), text(o, "status", "currentState"), errNotReady)
			}
		}
		return nil
	})
}

package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
	"github.com/fairlead-io/fairlead/internal/storage"
	"github.com/fairlead-io/fairlead/validators"
)

// InstanceManagerFacts reads what the deletion of an instance manager's pod is judged by: single objects
// only, since a deletion waits for it, and none after the first that lets the deletion pass.
func (r *Reader) InstanceManagerFacts(ctx context.Context, name, node string) (validators.InstanceManagerFacts, error) {
	var facts validators.InstanceManagerFacts
	var manager longhorn.InstanceManager
	err := r.objects.Get(ctx, client.ObjectKey{Namespace: r.profile.Namespace, Name: name}, &manager)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return facts, nil
	}
	if err != nil {
		return facts, fmt.Errorf("reading instance manager %s: %w", name, err)
	}
	facts.Running = manager.DeletionTimestamp == nil && manager.Status.CurrentState == longhorn.InstanceRunning
	if !facts.Running {
		return facts, nil
	}
	if facts.NodeReady, err = r.nodeReady(ctx, node); err != nil || !facts.NodeReady {
		return facts, err
	}
	facts.Instance, facts.Volume, err = r.attachedInstance(ctx, &manager)
	return facts, err
}

func (r *Reader) nodeReady(ctx context.Context, name string) (bool, error) {
	var node corev1.Node
	if err := r.objects.Get(ctx, client.ObjectKey{Name: name}, &node); apierrors.IsNotFound(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("reading node %s: %w", name, err)
	}
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	}), nil
}

// attachedInstance is the first instance that runs for an attached volume; its names are empty if there is none.
// An instance without a volume is a left-over: nothing uses it.
func (r *Reader) attachedInstance(ctx context.Context, m *longhorn.InstanceManager) (instance, volume string, err error) {
	looked := map[string]bool{"": true}
	for _, instance := range runningInstances(m) {
		volume := storage.VolumeOfInstance(instance)
		if looked[volume] {
			continue
		}
		looked[volume] = true
		var v longhorn.Volume
		err := r.objects.Get(ctx, client.ObjectKey{Namespace: r.profile.Namespace, Name: volume}, &v)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", "", fmt.Errorf("reading volume %s: %w", volume, err)
		}
		if !surelyDetached(&v) {
			return instance, volume, nil
		}
	}
	return "", "", nil
}

// runningInstances are the engines and replicas that run or start, engines first. Longhorn's own instance
// manager controller goes by the same two states.
func runningInstances(m *longhorn.InstanceManager) []string {
	var names []string
	for _, reported := range []map[string]longhorn.InstanceProcess{
		m.Status.InstanceEngines, m.Status.InstanceEngineFrontends, m.Status.InstanceReplicas, m.Status.Instances,
	} {
		for _, name := range slices.Sorted(maps.Keys(reported)) {
			if state := reported[name].Status.State; state == longhorn.InstanceRunning || state == longhorn.InstanceStarting {
				names = append(names, name)
			}
		}
	}
	return names
}

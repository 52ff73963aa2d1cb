package cluster

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/storage/longhorn"
	"github.com/fairlead-io/fairlead/internal/storage/longhorn/components"
	"github.com/fairlead-io/fairlead/validators"
)

// InstanceManagerFacts reads the facts for judging the deletion of an instance manager's pod. It reads
// single objects only, because the deletion waits, and stops at the first that allows the deletion.
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
// An instance without a volume is left over, and unused.
func (r *Reader) attachedInstance(ctx context.Context, m *longhorn.InstanceManager) (instance, volume string, err error) {
	looked := map[string]bool{"": true}
	for _, instance := range components.RunningInstances(m) {
		volume := longhorn.VolumeOfInstance(instance)
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
		if !v.Detached() {
			return instance, volume, nil
		}
	}
	return "", "", nil
}

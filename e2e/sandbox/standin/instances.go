package standin

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const volumeSize = "1073741824"

// volumeLabel is on a volume's engine and replicas.
const volumeLabel = "longhornvolume"

// createInstances makes the engine and the replicas of a new volume, all stopped.
func (l Longhorn) createInstances(ctx context.Context, v Volume) error {
	if err := l.createEngine(ctx, v.Name, v.engine()); err != nil {
		return err
	}
	for n, node := range v.ReplicaNodes {
		if err := l.createReplica(ctx, n, v.Name, v.engine(), node, stateStopped, time.Now().UTC().Format(time.RFC3339)); err != nil {
			return err
		}
	}
	return l.waitInstances(ctx, v.Name)
}

func (l Longhorn) createEngine(ctx context.Context, volume, engine string) error {
	return l.createInstance(ctx, "Engine", volume+"-e-0", volume, map[string]any{
		"volumeName": volume, "volumeSize": volumeSize, "dataEngine": engine, "desireState": stateStopped,
		"image": engineImage, "frontend": "blockdev", "active": true,
	})
}

// createReplica makes one that is healthy since then. One that never was is being rebuilt.
func (l Longhorn) createReplica(ctx context.Context, n int, volume, engine, node, desire, healthyAt string) error {
	name := fmt.Sprintf("%s-r-%d", volume, n)
	return l.createInstance(ctx, "Replica", name, volume, map[string]any{
		"volumeName": volume, "volumeSize": volumeSize, "dataEngine": engine, "nodeID": node, "desireState": desire,
		"image": engineImage, "engineName": volume + "-e-0", "active": true, "healthyAt": healthyAt,
		"diskID": diskUUID(node), "diskPath": diskPath, "dataDirectoryName": name,
	})
}

func (l Longhorn) createInstance(ctx context.Context, kind, name, volume string, spec map[string]any) error {
	parent := l.object("Volume", volume)
	if err := l.client.Get(ctx, client.ObjectKeyFromObject(parent), parent); err != nil {
		return fmt.Errorf("reading volume %s: %w", volume, err)
	}
	o := l.object(kind, name)
	o.SetLabels(map[string]string{volumeLabel: volume})
	o.SetOwnerReferences(owner(parent, false))
	o.Object["spec"] = spec
	return l.create(ctx, o)
}

// instances are engines and replicas.
func (l Longhorn) instances(ctx context.Context, options ...client.ListOption) ([]unstructured.Unstructured, error) {
	engines, err := l.list(ctx, "Engine", options...)
	if err != nil {
		return nil, err
	}
	replicas, err := l.list(ctx, "Replica", options...)
	return append(engines, replicas...), err
}

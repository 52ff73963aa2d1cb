package standin

import (
	"context"
	"time"
)

const diskPath = "/var/lib/longhorn/"

// diskUUID of the one disk that each node has.
func diskUUID(node string) string {
	sum := checksum("disk of " + node)
	return sum[:8] + "-" + sum[8:12] + "-4" + sum[13:16] + "-8" + sum[17:20] + "-" + sum[20:32]
}

// createNode makes the object that Longhorn has for a node, with one disk, Ready.
func (l Longhorn) createNode(ctx context.Context, name string) error {
	const disk = "default-disk-1"
	node := l.object("Node", name)
	node.Object["spec"] = map[string]any{
		"name": name, "allowScheduling": true,
		"disks": map[string]any{disk: map[string]any{"path": diskPath, "diskType": "filesystem", "allowScheduling": true}},
	}
	if err := l.create(ctx, node); err != nil {
		return err
	}
	conditions := func(types ...string) []any {
		var list []any
		for _, t := range types {
			list = append(list, map[string]any{"type": t, "status": "True", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)})
		}
		return list
	}
	return l.status(ctx, "Node", name, map[string]any{
		"conditions": conditions("Ready", "MountPropagation", "Schedulable"),
		"diskStatus": map[string]any{disk: map[string]any{
			"diskUUID": diskUUID(name), "diskPath": diskPath, "diskType": "filesystem", "conditions": conditions("Ready", "Schedulable"),
		}},
	})
}

package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/internal/cluster/lists"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// Rollout gathers the facts for the next step of the network's roll-out. values are
// the values in effect. A malformed value is returned as an error of
// settings.SharedVolumeNetwork.
func (r *Reader) Rollout(ctx context.Context, values catalog.Values, record rollout.Record, now time.Time) (rollout.Rollout, error) {
	facts := rollout.Rollout{Record: record, Now: now, MountsFromHost: r.profile.MountsFromHost}
	var err error
	if facts.Desired, err = catalog.SharedVolumeNetwork(values, r.profile); err != nil {
		return facts, err
	}
	if facts.DaemonSet, err = r.DaemonSet(ctx); err != nil {
		return facts, err
	}
	if facts.Clients, err = r.Clients(ctx); err != nil {
		return facts, err
	}
	if err = r.markLost(ctx, facts.Clients); err != nil {
		return facts, err
	}
	if facts.Volumes, err = r.Volumes(ctx); err != nil {
		return facts, err
	}
	if facts.Services, err = r.Services(ctx); err != nil {
		return facts, err
	}
	facts.Servers, err = r.Servers(ctx)
	return facts, err
}

// markLost marks the clients on nodes that are not Ready. Nodes are read only if a client is down: pods of
// a lost node are not Ready.
func (r *Reader) markLost(ctx context.Context, clients []storage.Client) error {
	down := func(c storage.Client) bool { return !c.Ready || c.Terminating }
	if !slices.ContainsFunc(clients, down) {
		return nil
	}
	ready := map[string]bool{}
	err := lists.ForEach(ctx, r.objects, &corev1.NodeList{}, func(node *corev1.Node) { ready[node.Name] = nodeReady(node) })
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	for i := range clients {
		clients[i].Lost = down(clients[i]) && clients[i].Node != "" && !ready[clients[i].Node]
	}
	return nil
}

//go:build linux

package nodes

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"
)

// replicas writes over the storage links from an engine to its replicas, and tries to change the network meanwhile: the
// change is refused, and no instance manager in use is deleted.
func replicas(ctx context.Context, t *testing.T, c *Cluster) {
	networkOn(ctx, t, c)
	must(t, c.CreateClaim(ctx, "block", "longhorn", "ReadWriteOnce"))
	must(t, c.Run(ctx, Workload{Name: "block", Claim: "block", Node: "node-1", Command: beat}))
	_, err := c.WaitWorkload(ctx, "block")
	must(t, err)
	// Of two replicas at least one is on another node.
	c.expectOnStorage(t, 0.05, func() {
		_, err := c.Shell(ctx, "block", "dd if=/dev/urandom of=/data/file bs=1M count=20 conv=fsync 2>/dev/null")
		must(t, err)
	})

	managers := c.instanceManagers(ctx, t)
	changed := uptime(t)
	must(t, c.Set(ctx, settingNetworkRWX, "false"))
	if err := c.Set(ctx, settingNetwork, ""); err == nil || !strings.Contains(err.Error(), "can't leave "+StorageNetwork+" while volumes are attached") {
		t.Errorf("leaving the network under replicas: %v", err)
	}
	c.waitBeat(ctx, t, "block")
	if got := c.instanceManagers(ctx, t); !slices.Equal(got, managers) {
		t.Errorf("instance managers were %v and are %v", managers, got)
	}
	if pause := c.readBeats(ctx, t, "block").longestPause(changed); pause > 5*time.Second {
		t.Errorf("the workload paused for %s", pause)
	}
	must(t, c.Remove(ctx, "block"))
	setNetworks(ctx, t, c, "", false)
	if got := c.instanceManagers(ctx, t); slices.Equal(got, managers) {
		t.Error("no instance manager has left the network")
	}
}

// instanceManagers that run, by the UIDs of their pods.
func (c *Cluster) instanceManagers(ctx context.Context, t *testing.T) (uids []string) {
	t.Helper()
	pods, err := c.PodsWith(ctx, Namespace, "longhorn.io/component", "instance-manager")
	must(t, err)
	for _, pod := range pods {
		uids = append(uids, string(pod.UID))
	}
	slices.Sort(uids)
	return uids
}

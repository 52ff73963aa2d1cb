//go:build linux

package nodes

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/e2e/eventually"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// TestLonghorn runs scenarios with shared volumes on one cluster: one with Longhorn alone, then all with Fairlead.
func TestLonghorn(t *testing.T) {
	ctx, c := startLonghorn(t)
	t.Run("SharedVolumeWithLonghornAlone", func(t *testing.T) { sharedVolume(ctx, t, c) })
	// Servers are on the cluster network for seconds, not a minute, before clients follow.
	installFairlead(ctx, t, c, Configure("networks: {gate: node, settle: 10s, perVolume: [kube-system/fixed-net]}"))
	for _, scenario := range []struct {
		name string
		run  func(context.Context, *testing.T, *Cluster)
	}{
		{"SharedVolume", sharedVolume},
		{"BusyCluster", busyCluster},
		{"Replicas", replicas},
		{"FairleadItself", fairleadItself},
		{"ClientRestart", clientRestart},
		{"FixedAddress", fixedAddress},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			defer c.Step(scenario.name)()
			scenario.run(ctx, t, c)
		})
	}
}

// The settings of the storage network.
const (
	settingNetwork    = "storage-network"
	settingNetworkRWX = "storage-network-for-rwx-volume-enabled"
)

// applyTimeout is for settings whose gate is open: all CSI plugin pods restart one after another.
const applyTimeout = 3 * time.Minute

// setNetworks sets both settings when no volume is attached, and waits until they are applied.
func setNetworks(ctx context.Context, t *testing.T, c *Cluster, network string, shared bool) {
	t.Helper()
	defer c.Step("setting the network")()
	must(t, c.WaitDetached(ctx))
	if network != "" {
		must(t, c.Set(ctx, settingNetwork, network))
	}
	must(t, c.Set(ctx, settingNetworkRWX, fmt.Sprint(shared)))
	if network == "" {
		must(t, c.Set(ctx, settingNetwork, network))
	}
	clients := network
	if !shared {
		clients = ""
	}
	must(t, c.waitPlugins(ctx, clients))
	must(t, c.WaitApplied(ctx, applyTimeout, settingNetwork, settingNetworkRWX))
}

// networkOn puts replicas and shared volumes on the storage network.
func networkOn(ctx context.Context, t *testing.T, c *Cluster) {
	t.Helper()
	setNetworks(ctx, t, c, StorageNetwork, true)
}

// waitPlugins waits until the CSI plugin pods of all nodes are on a network, or on none: a setting that was just changed
// still counts as applied.
func (c *Cluster) waitPlugins(ctx context.Context, network string) error {
	return eventually.Until(ctx, fmt.Sprintf("CSI plugin pods on network %q", network), applyTimeout, func() error {
		for _, n := range c.Nodes {
			pod, err := c.pluginOn(ctx, n)
			if err != nil {
				return err
			}
			if asked := pod.Annotations[storage.NetworksAnnotation]; network == "" && asked != "" || !strings.Contains(asked, network[strings.Index(network, "/")+1:]) {
				return fmt.Errorf("%s asks for %q", pod.Name, asked)
			}
		}
		return nil
	})
}

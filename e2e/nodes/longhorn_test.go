//go:build linux

package nodes

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/e2e/eventually"
	"github.com/fairlead-io/fairlead/internal/multus"
)

// networkConfiguration has servers on the cluster network for seconds, not a minute, before clients follow.
const networkConfiguration = "longhorn: {networks: {gate: node, settle: 10s, perVolume: [kube-system/fixed-net], fixedAddresses: [{network: kube-system/fixed-net, ranges: [192.168.60.200/32]}]}}"

// scenario of a cluster that goes on with the next one.
type scenario struct {
	name string
	run  func(context.Context, *testing.T, *Cluster)
}

func (c *Cluster) runAll(ctx context.Context, t *testing.T, scenarios ...scenario) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			defer c.Step(s.name)()
			s.run(ctx, t, c)
		})
	}
}

// TestLonghorn puts volumes on the storage network and takes them off again: first with Longhorn alone, then with Fairlead.
func TestLonghorn(t *testing.T) {
	ctx, c := startLonghorn(t)
	c.runAll(ctx, t, scenario{"SharedVolumeWithLonghornAlone", sharedVolume})
	installFairlead(ctx, t, c, Configure(networkConfiguration))
	c.runAll(ctx, t, scenario{"SharedVolume", sharedVolume}, scenario{"BusyCluster", busyCluster}, scenario{"Replicas", replicas})
}

// TestFailures ends what volumes on the storage network rely on: mounts, servers, Fairlead, and a node that is fenced.
func TestFailures(t *testing.T) {
	ctx, c := startLonghorn(t)
	fenced, err := c.InstallFencing(ctx)
	must(t, err)
	must(t, c.InstallFairlead(ctx, Installation{
		Overlay: "cert-manager", Components: []string{"fencing"}, Patches: []string{Configure(networkConfiguration, fencingConfiguration)},
	}, "fairlead-webhook", "fairlead-controller"))
	must(t, c.WaitWorking(ctx))
	c.runAll(ctx, t,
		scenario{"ClientRestart", clientRestart}, scenario{"ServerMoves", serverMoves}, scenario{"FixedAddress", fixedAddress}, scenario{"FairleadItself", fairleadItself},
		scenario{"StaleWriter", func(ctx context.Context, t *testing.T, c *Cluster) { fencing{c, t, fenced}.staleWriter(ctx) }},
	)
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
	if network == "" { // refused while a webhook's cache still has a volume attached
		must(t, eventually.Until(ctx, "leaving the network", time.Minute, func() error { return c.Set(ctx, settingNetwork, network) }))
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
			if asked := pod.Annotations[multus.NetworksAnnotation]; network == "" && asked != "" || !strings.Contains(asked, network[strings.Index(network, "/")+1:]) {
				return fmt.Errorf("%s asks for %q", pod.Name, asked)
			}
		}
		return nil
	})
}

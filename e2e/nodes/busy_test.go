//go:build linux

package nodes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/e2e/eventually"
	"github.com/fairlead-io/fairlead/internal/multus"
)

// serverMove is the longest that a shared volume may be away while its server moves to another node: the grace period of 90 s
// in which Longhorn's server waits for earlier clients, and before that the start of engine and server on a busy machine.
const serverMove = 3 * time.Minute

// busyCluster switches the network of shared volumes on and off again as docs/rwx-network.md says for a busy cluster,
// while two workloads on different nodes write to one volume all the time.
func busyCluster(ctx context.Context, t *testing.T, c *Cluster) {
	setNetworks(ctx, t, c, StorageNetwork, false)
	must(t, c.CreateClaim(ctx, "busy", "longhorn-hard", "ReadWriteMany"))
	began := uptime(t)
	for _, name := range []string{"busy-a", "busy-b"} {
		must(t, c.Run(ctx, Workload{Name: name, Claim: "busy", Command: beat, Apart: "busy"}))
	}
	for _, name := range []string{"busy-a", "busy-b"} {
		_, err := c.WaitWorkload(ctx, name)
		must(t, err)
		c.waitBeat(ctx, t, name)
	}
	for _, on := range []bool{true, false} {
		name := map[bool]string{true: "On", false: "Off"}[on]
		t.Run(name, func(t *testing.T) {
			began = uptime(t)
			must(t, c.Set(ctx, settingNetworkRWX, fmt.Sprint(on)))
			if !on { // servers leave first
				c.restartBoth(ctx, t)
			}
			for _, n := range c.Nodes {
				c.drainUntil(ctx, t, n, on)
			}
			c.waitRollout(ctx, t, on)
			if on {
				c.restartBoth(ctx, t)
			}
			must(t, c.WaitApplied(ctx, applyTimeout, settingNetworkRWX))
			c.waitBeat(ctx, t, "busy-a")
			beats := c.readBeats(ctx, t, "busy-a")
			if pause := beats.longestPause(began); pause > serverMove {
				t.Errorf("the workloads paused for %s", pause)
			} else {
				t.Logf("the longest pause was %s", pause)
			}
			c.expectServers(ctx, t, on)
		})
	}
	must(t, c.Remove(ctx, "busy-a", "busy-b"))
}

// restartBoth stops the workloads until the volume's Service has changed, and starts them again.
func (c *Cluster) restartBoth(ctx context.Context, t *testing.T) {
	t.Helper()
	defer c.Step("the volume moves")()
	scale := func(replicas string) {
		_, err := c.Kubectl(ctx, "", "scale", "deployment/busy-a", "deployment/busy-b", "--replicas="+replicas)
		must(t, err)
	}
	scale("0")
	must(t, c.WaitDetached(ctx))
	must(t, eventually.Until(ctx, "the volume to move", applyTimeout, func() error {
		var rollouts v1alpha1.NetworkRolloutList
		if err := c.Client.List(ctx, &rollouts, client.InNamespace(Namespace)); err != nil {
			return err
		}
		for _, r := range rollouts.Items {
			if len(r.Status.OutOfLine) > 0 {
				return errors.New(r.Status.OutOfLine[0].Message)
			}
		}
		return nil
	}))
	scale("1")
	for _, name := range []string{"busy-a", "busy-b"} {
		_, err := c.WaitWorkload(ctx, name)
		must(t, err)
	}
}

// drainUntil drains a node, as docs/rwx-network.md says, until its CSI plugin pod has changed.
func (c *Cluster) drainUntil(ctx context.Context, t *testing.T, n *Node, on bool) {
	t.Helper()
	c.uncordonLater(t, n.Name)
	// A container that starts while the volume's server moves waits for two minutes, and the drain for the container.
	// A server that moves again in its grace period waits for the whole period again.
	for _, name := range []string{"busy-a", "busy-b"} {
		_, err := c.WaitWorkload(ctx, name)
		must(t, err)
		c.waitBeat(ctx, t, name)
	}
	done := c.Step("draining " + n.Name)
	// Longhorn's driver deployer, which starts again elsewhere, has a pod without a controller for a moment.
	must(t, eventually.Until(ctx, "the drain", 2*applyTimeout, func() error {
		_, err := c.Kubectl(ctx, "", "drain", n.Name, "--ignore-daemonsets", "--timeout=120s", "--pod-selector=longhorn.io/component!=instance-manager")
		return err
	}))
	done()
	done = c.Step("the CSI plugin pod of " + n.Name + " changes")
	must(t, eventually.Until(ctx, "the CSI plugin pod of "+n.Name, applyTimeout, func() error {
		pod, err := c.pluginOn(ctx, n)
		if err == nil && onNetwork(pod) == on {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("%s is on the network: %t", pod.Name, !on)
		}
		var rollouts v1alpha1.NetworkRolloutList
		_ = c.Client.List(ctx, &rollouts, client.InNamespace(Namespace))
		for _, r := range rollouts.Items {
			err = fmt.Errorf("phase %s: %s", r.Status.Phase, r.Status.Message)
		}
		return err
	}))
	done()
	_, err := c.Kubectl(ctx, "", "uncordon", n.Name)
	must(t, err)
}

// onNetwork tells whether Multus reports the storage network for a pod.
func onNetwork(pod *corev1.Pod) bool {
	reported, err := multus.ReportedInterfaces(pod.Annotations)
	return err == nil && slices.ContainsFunc(reported, func(r multus.Reported) bool { return r.Network == StorageNetwork })
}

// waitRollout waits until both halves have switched. Longhorn's setting is applied later, when the volume has moved.
func (c *Cluster) waitRollout(ctx context.Context, t *testing.T, on bool) {
	t.Helper()
	must(t, eventually.Until(ctx, "the roll-out", applyTimeout, func() error {
		var rollouts v1alpha1.NetworkRolloutList
		if err := c.Client.List(ctx, &rollouts, client.InNamespace(Namespace)); err != nil {
			return err
		}
		if len(rollouts.Items) != 1 {
			return fmt.Errorf("there are %d", len(rollouts.Items))
		}
		status := rollouts.Items[0].Status
		if status.Phase != "Applied" || (status.Clients.Network != "") != on || (status.Servers.Network != "") != on {
			return fmt.Errorf("phase %s, clients on %q, servers on %q: %s", status.Phase, status.Clients.Network, status.Servers.Network, status.Message)
		}
		return nil
	}))
}

func (c *Cluster) expectServers(ctx context.Context, t *testing.T, on bool) {
	t.Helper()
	pods, err := c.PodsWith(ctx, Namespace, "longhorn.io/component", "share-manager")
	must(t, err)
	if len(pods) == 0 {
		t.Error("there is no server")
	}
	for i := range pods {
		if onNetwork(&pods[i]) != on {
			t.Errorf("server %s is on the storage network: %t, want %t", pods[i].Name, !on, on)
		}
	}
}

//go:build linux

package nodes

import (
	"context"
	"testing"

	"github.com/fairlead-io/fairlead/webhook/registration"
)

// fairleadItself rolls Fairlead, drains it off a node and cuts a webhook's node off, while a workload writes to a shared
// volume and others start and stop.
func fairleadItself(ctx context.Context, t *testing.T, c *Cluster) {
	networkOn(ctx, t, c)
	must(t, c.CreateClaim(ctx, "steady", "longhorn-hard", "ReadWriteMany"))
	must(t, c.Run(ctx, Workload{Name: "steady", Claim: "steady", Command: beat, Node: "node-1"}))
	_, err := c.WaitWorkload(ctx, "steady")
	must(t, err)
	c.waitBeat(ctx, t, "steady")
	began := uptime(t)
	another := func(t *testing.T, node string) { // a volume that comes and goes
		t.Helper()
		defer c.Step("another volume comes and goes")()
		must(t, c.CreateClaim(ctx, "another", "longhorn-hard", "ReadWriteMany"))
		must(t, c.Run(ctx, Workload{Name: "another", Claim: "another", Command: beat, Node: node}))
		_, err := c.WaitWorkload(ctx, "another")
		must(t, err)
		c.waitBeat(ctx, t, "another")
		c.expectServers(ctx, t, true)
		must(t, c.Remove(ctx, "another"))
	}

	t.Run("RolledOut", func(t *testing.T) {
		_, err := c.Kubectl(ctx, "", "-n", registration.Namespace, "rollout", "restart", "deployment/fairlead-webhook", "deployment/fairlead-controller")
		must(t, err)
		another(t, "node-2")
		must(t, c.WaitRolledOut(ctx, registration.Namespace, "fairlead-webhook", "fairlead-controller"))
	})
	webhooks := func() (nodes []string) {
		pods, err := c.PodsWith(ctx, registration.Namespace, "app.kubernetes.io/component", "webhook")
		must(t, err)
		for i := range pods {
			if ready(&pods[i]) && pods[i].Spec.NodeName != "node-1" {
				nodes = append(nodes, pods[i].Spec.NodeName)
			}
		}
		if len(nodes) == 0 {
			t.Fatal("no webhook is Ready outside node-1")
		}
		return nodes
	}
	drain := func(t *testing.T, node string) { // of Fairlead
		c.uncordonLater(t, node)
		_, err := c.Kubectl(ctx, "", "drain", node, "--ignore-daemonsets", "--timeout=120s", "--pod-selector=app.kubernetes.io/name=fairlead")
		must(t, err)
	}
	t.Run("Drained", func(t *testing.T) {
		node := webhooks()[0]
		drain(t, node)
		another(t, "node-1")
		_, err := c.Kubectl(ctx, "", "uncordon", node)
		must(t, err)
		must(t, c.WaitRolledOut(ctx, registration.Namespace, "fairlead-webhook", "fairlead-controller"))
	})
	t.Run("CutOff", func(t *testing.T) {
		// Longhorn moves a server whose node is lost, and restarts its workloads.
		node := c.shareManager(ctx, t, "steady").Spec.NodeName
		drain(t, node)
		must(t, c.WaitRolledOut(ctx, registration.Namespace, "fairlead-webhook", "fairlead-controller"))
		_, err := c.Kubectl(ctx, "", "uncordon", node)
		must(t, err)
		name := webhooks()[0]
		for _, n := range c.Nodes {
			if n.Name != name {
				continue
			}
			t.Cleanup(func() { must(t, n.Mend(context.Background(), Management)) }) // also where the test fails
			must(t, n.Cut(ctx, Management))
			another(t, "node-1")
			must(t, n.Mend(ctx, Management))
			must(t, n.WaitReady(ctx, startTimeout))
		}
	})
	c.waitBeat(ctx, t, "steady")
	if pause := c.readBeats(ctx, t, "steady").longestPause(began); pause > serverMove {
		t.Errorf("the workload paused for %s", pause)
	} else {
		t.Logf("the longest pause was %s", pause)
	}
	must(t, c.Remove(ctx, "steady"))
	must(t, c.waitLonghorn(ctx))
}

package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// A leader is followed within these times on an idle machine: at once when it
// was asked to end, and after its lease when it was killed.
const (
	followedAfterStop = 4 * time.Second
	followedAfterKill = 12 * time.Second
)

// TestReplicas shows that one lost node, or one lost process, takes one replica only.
func TestReplicas(t *testing.T) {
	c := newCluster(t, options{webhooks: 1, controllers: 2})
	deployments := []string{sandbox.WebhookDeployment, sandbox.ControllerDeployment}

	t.Run("each roll-out puts replicas on different nodes", func(t *testing.T) {
		c := &cluster{Sandbox: c.Sandbox, t: t}
		for i := range 4 {
			for _, d := range deployments {
				c.rollOut(d, fmt.Sprint(i))
				if nodes := c.nodesOf(d); len(nodes) != 2 {
					t.Errorf("the replicas of %s are on %v", d, nodes)
				}
			}
		}
	})

	t.Run("replicas share the one node that is left", func(t *testing.T) {
		c := &cluster{Sandbox: c.Sandbox, t: t}
		for _, node := range []string{"node-2", "node-3"} {
			c.kubectl("cordon", node)
			defer c.kubectl("uncordon", node)
		}
		for _, d := range deployments {
			c.rollOut(d, "on one node")
			if nodes := c.nodesOf(d); len(nodes) != 1 || nodes["node-1"] != 2 {
				t.Errorf("the replicas of %s are on %v", d, nodes)
			}
		}
	})

	t.Run("a leader is followed", func(t *testing.T) {
		c := &cluster{Sandbox: c.Sandbox, t: t}
		for i, way := range []struct {
			name string
			end  func(*sandbox.Replica) error
			most time.Duration
		}{
			{"is asked to end", (*sandbox.Replica).Stop, followedAfterStop},
			{"is killed", (*sandbox.Replica).Kill, followedAfterKill},
		} {
			var leader *sandbox.Replica
			running := 0
			for _, r := range c.Replicas() {
				if r.Running() && leads(t, r) {
					leader = r
					running++
				}
			}
			if running != 1 {
				t.Fatalf("%d replicas lead", running)
			}
			holder, began := c.leader(), time.Now()
			c.must(way.end(leader))
			ended := time.Since(began)
			c.eventually("another leader", 30*time.Second, func() error {
				if now := c.leader(); now == holder || now == "" {
					return fmt.Errorf("the leader is %q", now)
				}
				return nil
			})
			took := time.Since(began)
			t.Logf("a leader that %s ended after %s and was followed after %s", way.name, ended.Round(time.Millisecond), took.Round(time.Millisecond))
			if took > way.most {
				t.Errorf("a leader that %s was followed after %s, limit %s", way.name, took, way.most)
			}
			again, err := c.StartReplica(t.Context(), sandbox.ControllerDeployment, fmt.Sprintf("controller-again-%d", i))
			c.must(err)
			c.must(again.WaitReady(t.Context()))
		}
	})
}

// rollOut changes the template: kubectl restarts no Deployment twice in a second.
func (c *cluster) rollOut(deployment, why string) {
	c.t.Helper()
	c.kubectl("-n", "fairlead-system", "patch", "deployment", deployment, "-p", fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"test.fairlead.io/roll-out":%q}}}}}`, why))
}

// nodesOf counts the pods of a Deployment by node, when its roll-out is complete.
func (c *cluster) nodesOf(deployment string) map[string]int {
	c.t.Helper()
	nodes := map[string]int{}
	c.eventually("the roll-out of "+deployment, time.Minute, func() error {
		var d appsv1.Deployment
		c.must(c.Client.Get(c.t.Context(), client.ObjectKey{Namespace: "fairlead-system", Name: deployment}, &d))
		s := d.Status
		if s.ObservedGeneration != d.Generation || s.UpdatedReplicas != 2 || s.Replicas != 2 || s.ReadyReplicas != 2 {
			return fmt.Errorf("status: %+v", s)
		}
		var pods corev1.PodList
		c.must(c.Client.List(c.t.Context(), &pods, client.InNamespace("fairlead-system"), client.MatchingLabels(d.Spec.Selector.MatchLabels)))
		clear(nodes)
		for _, pod := range pods.Items {
			if pod.DeletionTimestamp == nil {
				nodes[pod.Spec.NodeName]++
			}
		}
		if nodes[""] > 0 || len(nodes) == 0 {
			return errors.New("a pod has no node")
		}
		return nil
	})
	return nodes
}

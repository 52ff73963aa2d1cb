package e2e

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
	"github.com/fairlead-io/fairlead/internal/longhorn"
)

const (
	critical     = "system-cluster-critical"
	nodeCritical = "system-node-critical"
)

// TestProposalsTestPlans follows the two test plans of the proposal "Support non-disruptive volume-related setting updates",
// word by word. In the second, nothing needs to be applied again: the last detach is enough.
// Longhorn then deletes instance managers for another setting.
func TestProposalsTestPlans(t *testing.T) {
	c := newCluster(t, options{webhooks: 1, controllers: 1, components: true}) // Fresh install Longhorn.
	c.run("no volume attached", func(t *testing.T, c *cluster) {
		before := c.componentPods()
		// Customize a Danger Zone setting such as setting the value of `priority-class` to be `system-cluster-critical`
		c.has(c.set(system, "priority-class", critical), "accepted; being applied now")
		// The setting applies to all components managed by Longhorn.
		// The `Status.Applied` of the setting is `true`.
		c.waitSetting(system, "priority-class", "true")
		c.allBuiltWith(critical)
		for name, uid := range c.componentPods() {
			if before[name] == uid {
				t.Errorf("pod %s was not restarted", name)
			}
		}
		c.has(c.kubectl("-n", namespace, "get", own, "priority-class"), "true", "every component has the value")
	})
	// Create a volume with a replica. Attach the volume to a node.
	c.attachNew("node-1", standin.Volume{Name: "pvc-1", ReplicaNodes: []string{"node-2"}})
	c.run("volume attached with a replica", func(t *testing.T, c *cluster) {
		before := c.componentPods()
		idle := c.instanceManager("node-3", "v1").Name
		c.has(c.set(system, "priority-class", nodeCritical), "1 instance manager restarts now; the rest when these volumes are detached: pvc-1 (node-1)")
		// The setting only applies to pods of the instance manager without engine and replica processes.
		c.waitIs("priority class of the idle instance manager", 30*time.Second, true, func() any {
			return slices.ContainsFunc(c.allComponentPods(), func(p corev1.Pod) bool {
				return p.Name == idle && string(p.UID) != before[idle] && p.Spec.PriorityClassName == nodeCritical
			})
		})
		time.Sleep(3 * time.Second) // nothing announces that no restart follows
		for name, uid := range c.componentPods() {
			if name != idle && before[name] != uid {
				t.Errorf("pod %s was restarted while a volume is attached", name)
			}
		}
		// The `Status.Applied` of the setting is `false`.
		c.waitSetting(system, "priority-class", "false")
		for _, look := range [][]string{{"get", own, "priority-class"}, {"describe", own, "priority-class"}, {"get", "events"}} {
			c.waitPrints(time.Minute, append([]string{"-n", namespace}, look...), "when these volumes are detached: pvc-1 (node-1)")
		}
		// Detach the volume.
		c.must(c.Longhorn().Detach(t.Context(), "pvc-1"))
		// The setting applies to all components managed by Longhorn.
		// The `Status.Applied` of the setting is `true`.
		c.waitSetting(system, "priority-class", "true")
		c.allBuiltWith(nodeCritical)
	})
	c.must(c.Longhorn().Attach(t.Context(), "pvc-1", "node-1"))
	c.run("Longhorn keeps instance managers in use", func(_ *testing.T, c *cluster) { c.keepsInstanceManagers() })
}

// keepsInstanceManagers does the same as Longhorn's sync of an RWX network setting while storage-network waits
// (updateCNI): it deletes every instance manager that is not on the storage network.
func (c *cluster) keepsInstanceManagers() {
	c.set(system, "storage-network", netA)
	c.has(c.set(system, "storage-network-for-rwx-volume-enabled", "true"),
		"storage-network still waits for 2 instance managers in use: the change restarts none of them")
	c.waitApplied(netA + "@lhnet1")
	manager := []string{"--as=system:serviceaccount:" + namespace + ":" + longhorn.DefaultNames().ServiceAccount, "--as-group=system:masters"}
	deletes := func(pod string, flags ...string) []string {
		return append([]string{"-n", namespace, "delete", "pod", pod, "--wait=false"}, flags...)
	}
	for node, runs := range map[string]string{"node-1": "pvc-1-e-0", "node-2": "pvc-1-r-0"} {
		pod := c.instanceManager(node, "v1")
		for _, flags := range [][]string{manager, append(manager, "--dry-run=server")} {
			c.has(c.refused(deletes(pod.Name, flags...)...), "instance manager "+pod.Name+" on "+node+" runs "+runs+" of volume pvc-1, which is attached")
		}
		c.kubectl(deletes(pod.Name, "--dry-run=server")...) // an administrator may
		if now := c.instanceManager(node, "v1"); now.UID != pod.UID || now.DeletionTimestamp != nil {
			c.t.Errorf("the instance manager of %s was restarted", node)
		}
	}
	c.kubectl(deletes(c.instanceManager("node-3", "v1").Name, manager...)...) // the idle instance manager
	c.must(c.Longhorn().Detach(c.t.Context(), "pvc-1"))
	c.waitIs("storage-network applied", time.Minute, "true", func() any { return c.field(own, "storage-network", "{.status.applied}") })
}

// waitSetting waits for status.applied. The stand-in does not write it to settings.longhorn.io where it is false.
func (c *cluster) waitSetting(group, name, applied string) {
	c.t.Helper()
	c.eventually(name+" applied "+applied, 120*time.Second, func() error {
		// Until Fairlead has seen the value, applied describes the former value.
		value := c.field(group, name, "{.value}")
		seen := c.field(own, name, "{.status.effectiveValue}|{.status.applied}| {.status.conditions[*].message} {.status.lastError}")
		if err := lacks("|"+seen, "|"+value+"|"+applied+"|"); err != nil || applied == "false" {
			return err
		}
		return lacks(c.field(group, name, "applied: {.status.applied}"), "applied: true")
	})
}

// componentPods are the UIDs of the storage system's pods by name.
func (c *cluster) componentPods() map[string]string {
	c.t.Helper()
	uids := map[string]string{}
	for _, pod := range c.allComponentPods() {
		uids[pod.Name] = string(pod.UID)
	}
	return uids
}

func (c *cluster) allComponentPods() []corev1.Pod {
	c.t.Helper()
	return slices.DeleteFunc(c.pods(nil), func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// allBuiltWith checks every pod and template of the storage system.
func (c *cluster) allBuiltWith(class string) {
	c.t.Helper()
	built := map[string]string{}
	for _, pod := range c.allComponentPods() {
		built["pod "+pod.Name] = pod.Spec.PriorityClassName
	}
	var deployments appsv1.DeploymentList
	c.must(c.Client.List(c.t.Context(), &deployments, client.InNamespace(namespace), client.MatchingLabels{"longhorn.io/managed-by": "longhorn-manager"}))
	for _, d := range deployments.Items {
		built["Deployment "+d.Name] = d.Spec.Template.Spec.PriorityClassName
	}
	var daemonSets appsv1.DaemonSetList
	c.must(c.Client.List(c.t.Context(), &daemonSets, client.InNamespace(namespace)))
	for _, d := range daemonSets.Items {
		built["DaemonSet "+d.Name] = d.Spec.Template.Spec.PriorityClassName
	}
	for what, got := range built {
		if got != class {
			c.t.Errorf("%s has priority class %q", what, got)
		}
	}
}

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
)

// TestNoVolumeAttached is the first test plan of the proposal "Support
// non-disruptive volume-related setting updates", word by word.
func TestNoVolumeAttached(t *testing.T) {
	c := newCluster(t, options{webhooks: 1, controllers: 1, components: true}) // Fresh install Longhorn.
	before := c.componentPods()
	// Customize a Danger Zone setting such as setting the value of `priority-class` to be `system-cluster-critical`
	says := c.set(system, "priority-class", "system-cluster-critical")
	if want := "accepted; being applied now"; !strings.Contains(says, want) {
		t.Errorf("got  %s\nwant %s", says, want)
	}
	// The setting applies to all components managed by Longhorn.
	// The `Status.Applied` of the setting is `true`.
	c.waitSetting(system, "priority-class", "true")
	c.allBuiltWith("system-cluster-critical")
	for name, uid := range c.componentPods() {
		if before[name] == uid {
			t.Errorf("pod %s is the one of before", name)
		}
	}
	if out := c.kubectl("-n", namespace, "get", own, "priority-class"); !strings.Contains(out, "true") || !strings.Contains(out, "every component is built with it") {
		t.Errorf("kubectl get says %s", out)
	}
}

// TestVolumeAttachedWithAReplica is the proposal's second test plan, word by
// word, but that nothing is to be reapplied: the last detach is enough.
func TestVolumeAttachedWithAReplica(t *testing.T) {
	c := newCluster(t, options{webhooks: 1, controllers: 1, components: true}) // Fresh install Longhorn.
	// Create a volume with a replica. Attach the volume to a node.
	c.must(c.Longhorn().CreateVolume(t.Context(), standin.Volume{Name: "pvc-1", ReplicaNodes: []string{"node-2"}}))
	c.must(c.Longhorn().Attach(t.Context(), "pvc-1", "node-1"))
	before := c.componentPods()
	idle := c.instanceManagerPod("node-3", "v1").Name
	says := c.set(system, "priority-class", "system-cluster-critical")
	for _, want := range []string{"1 instance manager restarts now; the rest when these volumes are detached: pvc-1 (node-1)"} {
		if !strings.Contains(says, want) {
			t.Errorf("got  %s\nwant %s", says, want)
		}
	}
	// The setting only applies to pods of the instance manager without engine and replica processes.
	c.eventually("the idle instance manager restarts", 30*time.Second, func() error {
		for _, pod := range c.allComponentPods() {
			if pod.Name == idle && string(pod.UID) != before[idle] && pod.Spec.PriorityClassName == "system-cluster-critical" {
				return nil
			}
		}
		return fmt.Errorf("it has not")
	})
	time.Sleep(3 * time.Second) // long enough for what must not happen
	for name, uid := range c.componentPods() {
		if name != idle && before[name] != uid {
			t.Errorf("pod %s was restarted while a volume is attached", name)
		}
	}
	// The `Status.Applied` of the setting is `false`.
	c.waitSetting(system, "priority-class", "false")
	c.eventually("it is told what it waits for", 60*time.Second, func() error { // it is not applied either while the idle one restarts
		for _, look := range [][]string{{"get", own, "priority-class"}, {"describe", own, "priority-class"}, {"get", "events"}} {
			if out := c.kubectl(append([]string{"-n", namespace}, look...)...); !strings.Contains(out, "when these volumes are detached: pvc-1 (node-1)") {
				return fmt.Errorf("kubectl %s does not say it:\n%s", strings.Join(look, " "), out)
			}
		}
		return nil
	})
	// Detach the volume.
	c.must(c.Longhorn().Detach(t.Context(), "pvc-1"))
	// The setting applies to all components managed by Longhorn.
	// The `Status.Applied` of the setting is `true`.
	c.waitSetting(system, "priority-class", "true")
	c.allBuiltWith("system-cluster-critical")
	if pod := c.instanceManagerPod("node-3", "v1"); pod.Spec.PriorityClassName != "system-cluster-critical" {
		t.Errorf("the instance manager of node-3 is of %s", pod.Spec.PriorityClassName)
	}
}

// waitSetting waits for status.applied, and says what the setting waits for if it does not come.
// That a setting of Longhorn's is not applied is Longhorn's to write there, which the stand-in does not do.
func (c *cluster) waitSetting(group, name, applied string) {
	c.t.Helper()
	c.eventually(name+" applied "+applied, 120*time.Second, func() error {
		// Until the value has been looked at, applied speaks of the one before.
		value := c.kubectl("-n", namespace, "get", group, name, "-o", "jsonpath={.value}")
		seen := c.kubectl("-n", namespace, "get", own, name, "-o", "jsonpath={.status.effectiveValue}|{.status.applied}")
		out := c.kubectl("-n", namespace, "get", group, name, "-o", "jsonpath={.status.applied}")
		if applied == "true" && out != applied || seen != value+"|"+applied {
			return fmt.Errorf("applied is %q: %s", out, c.kubectl("-n", namespace, "get", own, name, "-o", "jsonpath={.status.effectiveValue} {.status.conditions[0].message} {.status.lastError}"))
		}
		return nil
	})
}

// componentPods are the pods of the storage system's components by name.
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
	var list corev1.PodList
	c.must(c.Client.List(c.t.Context(), &list, client.InNamespace(namespace)))
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// allBuiltWith checks every pod and template of the storage system.
func (c *cluster) allBuiltWith(class string) {
	c.t.Helper()
	for _, pod := range c.allComponentPods() {
		if pod.Spec.PriorityClassName != class {
			c.t.Errorf("pod %s is of %q", pod.Name, pod.Spec.PriorityClassName)
		}
	}
	var deployments appsv1.DeploymentList
	c.must(c.Client.List(c.t.Context(), &deployments, client.InNamespace(namespace), client.MatchingLabels{"longhorn.io/managed-by": "longhorn-manager"}))
	for _, d := range deployments.Items {
		if got := d.Spec.Template.Spec.PriorityClassName; got != class {
			c.t.Errorf("Deployment %s makes pods of %q", d.Name, got)
		}
	}
	var daemonSets appsv1.DaemonSetList
	c.must(c.Client.List(c.t.Context(), &daemonSets, client.InNamespace(namespace)))
	for _, d := range daemonSets.Items {
		if got := d.Spec.Template.Spec.PriorityClassName; got != class {
			c.t.Errorf("DaemonSet %s makes pods of %q", d.Name, got)
		}
	}
}

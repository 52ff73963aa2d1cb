package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/planner"
)

// settingCase is one setting of the danger zone. Longhorn 1.7 has some of them; the others are Fairlead's own.
type settingCase struct {
	name, group string
	// refused value, and the whole message of kubectl.
	refused, why string
	// accepted value, and a part of the output of kubectl.
	value, says string
	// waits is a part of the status while volumes are attached; empty if the setting does not wait.
	waits string
}

const (
	notANetwork = "must be <namespace>/<NetworkAttachmentDefinition> (in this cluster: kube-system/backup-net, kube-system/storage-net), or \"\" for the cluster network"
	notABool    = `must be "true" or "false"`
	ofV2Alone   = `, or one for each data engine as {"v2":`
	fromOne     = "must be a whole number from 1 to 60"
	fromZero    = "must be a whole number from 0 to 2147483647"
	notAMask    = "must be CPUs from 0 to 1023, as a hexadecimal mask like 0x3 or as a list like 0-1,5"
	// All volumes are attached, and instances of both data engines run.
	allOf = "when these volumes are detached: pvc-1 (node-1, pod default/db-0), pvc-2 (node-2), pvc-rwx (node-2, pod default/web-0). Then "
	v1Of  = "the rest when these engines and replicas have stopped: pvc-1-e-0 (node-1), pvc-1-r-0 (node-2), pvc-rwx-e-0 (node-2). Then 2 instance managers restart"
	v2Of  = "accepted; will be applied when these engines and replicas have stopped: pvc-2-r-0 (node-1), pvc-2-e-0 (node-2), pvc-2-r-1 (node-3). Then 3 instance managers restart one by one"
)

func invalid(value, why string) string {
	return fmt.Sprintf("value: Invalid value: %q: %s", value, why)
}

// atOnce are settings that wait for nothing.
var atOnce = []settingCase{
	{name: "concurrent-replica-rebuild-per-node-limit", group: system, refused: "-1", why: invalid("-1", fromZero), value: "3"},
	{name: "concurrent-backing-image-replenish-per-node-limit", group: system, refused: "many", why: invalid("many", fromZero), value: "0"},
	{name: "disable-snapshot-purge", group: system, refused: "true",
		why: `value: Forbidden: snapshots can't be kept while auto-cleanup-system-generated-snapshot is "true": set auto-cleanup-system-generated-snapshot to "false" first`, value: "true"},
	{name: "engine-image-pod-liveness-probe-period", group: own, refused: "61", why: invalid("61", fromOne), value: "10", says: "1 DaemonSet rolls"},
	{name: "engine-image-pod-liveness-probe-timeout", group: own, refused: "0", why: invalid("0", fromOne), value: "8", says: "1 DaemonSet rolls"},
	{name: "engine-image-pod-liveness-probe-failure-threshold", group: own, refused: "x", why: invalid("x", fromOne), value: "6", says: "1 DaemonSet rolls"},
	{name: "system-managed-csi-components-resource-limits", group: own, refused: "10m",
		why:   invalid("10m", `must be a JSON object of requests and limits by container, like {"csi-attacher":{"requests":{"cpu":"10m"},"limits":{"memory":"128Mi"}}}, or "" for none`),
		value: `{"csi-attacher":{"requests":{"cpu":"10m"}},"longhorn-csi-plugin":{"requests":{"memory":"64Mi"}}}`, says: "1 Deployment and 1 DaemonSet roll; CSI plugin pods restart each when no RWX volume is attached on its node"},
}

// gated wait for volumes.
var gated = []settingCase{
	{name: "storage-network", group: system, refused: "kube-system", why: invalid("kube-system", notANetwork),
		value: netA, says: "accepted; 1 instance manager restarts now; the rest " + allOf + "1 backing image manager and 5 instance managers restart", waits: "pvc-1 (node-1, pod default/db-0), pvc-2 (node-2), pvc-rwx"},
	{name: "storage-network-for-rwx-volume-enabled", group: system, refused: "on", why: invalid("on", notABool),
		value: "true", says: "accepted; will be applied when these RWX volumes are detached: pvc-rwx (node-2, pod default/web-0). Then 3 CSI plugin pods restart.", waits: "1 RWX volume attached: pvc-rwx"},
	{name: "taint-toleration", group: system, refused: "a=b=c:NoSchedule",
		why:   invalid("a=b=c:NoSchedule", `must be <key>[=<value>]:<effect>, separated by ";", like dedicated=storage:NoSchedule;maintenance:NoExecute, or "" for none: "a=b=c:NoSchedule" must have at most one "="`),
		value: "dedicated=storage:NoSchedule", says: allOf + "4 Deployments and 2 DaemonSets roll, ", waits: "pvc-1 (node-1, pod default/db-0), pvc-2 (node-2), pvc-rwx"},
	{name: "system-managed-components-node-selector", group: system, refused: "disktype",
		why:   invalid("disktype", `must be <key>:<value>, separated by ";", like disktype:ssd;zone:a, or "" for none: "disktype" must have one ":"`),
		value: "disktype:ssd", says: allOf, waits: "pvc-1 (node-1, pod default/db-0), pvc-2 (node-2), pvc-rwx"},
	{name: "priority-class", group: system, refused: "fast",
		why:   invalid("fast", "there is no PriorityClass of this name (in this cluster: longhorn-critical, system-cluster-critical, system-node-critical), so no pod with it would start; create the PriorityClass first"),
		value: "system-node-critical", says: allOf, waits: "pvc-1 (node-1, pod default/db-0), pvc-2 (node-2), pvc-rwx"},
	{name: "guaranteed-instance-manager-cpu", group: system, refused: "41", why: invalid("41", `must be a number from 0 to 40, or one for each data engine as {"v1":"12","v2":"12"}`),
		value: "20", says: v1Of, waits: "pvc-1-e-0 (node-1)"},
	{name: "v2-data-engine-guaranteed-instance-manager-cpu", group: system, refused: "999", why: invalid("999", "must be a whole number from 1000 to 2147483647"),
		value: "2000", says: v2Of, waits: "pvc-2-r-0 (node-1)"},
}

// readOnly settings are written by Longhorn.
var readOnly = []settingCase{
	{name: "v2-data-engine-hugepage-limit", group: system, refused: "4096", why: "metadata.name: Forbidden: setting v2-data-engine-hugepage-limit is read-only: only Longhorn writes its value"},
}

// newer is set after the gated settings, and replaces one of them.
var newer = []settingCase{
	{name: "endpoint-network-for-rwx-volume", group: own, refused: "/nad", why: invalid("/nad", strings.Replace(notANetwork, " (", `: namespace "" is not a DNS label (`, 1)),
		value: netB, says: "accepted; will be applied when these RWX volumes are detached: pvc-rwx (node-2, pod default/web-0). Then 3 CSI plugin pods restart.", waits: "1 RWX volume attached: pvc-rwx"},
}

// engines are switched off last, as attached volumes prevent it.
var engines = []settingCase{
	{name: "v1-data-engine", group: system, refused: "false",
		why:   "value: Forbidden: the v1 data engine can't be switched off while 2 of its volumes are attached: pvc-1 (node-1, pod default/db-0), pvc-rwx (node-2, pod default/web-0); stop the workloads that use the volumes, then try again",
		value: "false", says: "3 instance managers are removed"},
	{name: "v2-data-engine", group: system, refused: "false",
		why:   "value: Forbidden: the v2 data engine can't be switched off while 1 of its volumes is attached: pvc-2 (node-2); stop the workloads that use the volume, then try again",
		value: "false", says: "3 instance managers are removed"},
}

// refuseHomeless wants refusals of settings that only a newer Longhorn has.
func (c *cluster) refuseHomeless(tested []settingCase) {
	c.t.Helper()
	for _, d := range catalog.DangerZone() {
		if slices.ContainsFunc(tested, func(is settingCase) bool { return is.name == string(d.Name) }) {
			continue
		}
		c.has(c.refusedSet(own, string(d.Name), d.Default), "the installed version does not have it")
	}
}

// TestEverySetting changes each setting of the danger zone: refusals, what each setting waits for, and that the last detach
// applies all of them with one restart of each pod.
func TestEverySetting(t *testing.T) {
	c := newCluster(t, options{webhooks: 1, controllers: 1, components: true})
	c.refuseHomeless(slices.Concat(atOnce, gated, readOnly, newer, engines))
	applied := func(s settingStatus, _ settingCase) bool { return s.applied }
	lh := c.Longhorn()
	c.must(lh.EnableV2(t.Context()))
	c.kubectl("label", "nodes", "--all", "disktype=ssd")

	c.setAll(atOnce[:2])
	c.refuseAll(atOnce[2:3]) // while snapshots are cleaned up
	c.set(system, "auto-cleanup-system-generated-snapshot", "false")
	c.setAll(atOnce[2:])
	for _, v := range []standin.Volume{
		{Name: "pvc-1", ReplicaNodes: []string{"node-2"}},
		{Name: "pvc-2", Engine: "v2", ReplicaNodes: []string{"node-1", "node-3"}},
		{Name: "pvc-rwx", Shared: true},
	} {
		c.must(lh.CreateVolume(t.Context(), v))
	}
	c.must(lh.Attach(t.Context(), "pvc-1", "node-1", "default/db-0"))
	c.must(lh.Attach(t.Context(), "pvc-2", "node-2"))
	c.waitSettings("settings that wait for nothing", 30*time.Second, atOnce, applied)
	c.must(lh.Attach(t.Context(), "pvc-rwx", "node-2", "default/web-0"))

	c.refuseAll(slices.Concat(atOnce[:2], atOnce[3:], gated, readOnly, newer, engines))
	waits := func(s settingStatus, is settingCase) bool {
		return s.phase != "" && s.applied == (is.waits == "") && strings.Contains(s.reason, is.waits)
	}
	c.setAll(gated)
	c.waitSettings("settings that wait for volumes", 20*time.Second, gated, waits)
	c.listed(gated)
	c.setAll(newer)
	c.waitSettings("settings that wait for volumes", 20*time.Second, newer, waits)
	replaced := []settingCase{
		{name: "storage-network-for-rwx-volume-enabled", group: system, waits: "no effect: endpoint-network-for-rwx-volume takes precedence"},
	}
	c.waitSettings("settings without effect", 10*time.Second, replaced, func(s settingStatus, is settingCase) bool { return s.applied && s.reason == is.waits })

	before := c.componentPods()
	for _, volume := range []string{"pvc-1", "pvc-2", "pvc-rwx"} {
		c.must(lh.Detach(t.Context(), volume))
	}
	built := slices.DeleteFunc(slices.Concat(atOnce, gated, newer), func(is settingCase) bool { return is.name == replaced[0].name })
	c.waitSettings("settings after the last detach", 75*time.Second, built, applied)
	time.Sleep(20 * time.Second) // nothing announces that no restart follows
	c.restartedOnceForAll(before)

	c.setAll(engines)
	c.waitSettings("engines off", 30*time.Second, engines, applied)
	if left := c.pods(map[string]string{"longhorn.io/component": "instance-manager"}); len(left) > 0 {
		t.Errorf("%d instance managers remain", len(left))
	}
}

// restartedOnceForAll wants one restart of every instance manager that was in use, for all settings together.
func (c *cluster) restartedOnceForAll(before map[string]string) {
	c.t.Helper()
	var list eventsv1.EventList
	c.must(c.Client.List(c.t.Context(), &list, client.InNamespace(namespace)))
	notes := map[string][]string{}
	for _, e := range list.Items {
		if e.Reason == "Restarted" && e.Regarding.Kind == "Pod" {
			notes[e.Regarding.Name] = append(notes[e.Regarding.Name], e.Note)
		}
	}
	for _, node := range []string{"node-1", "node-2", "node-3"} {
		for engine, due := range map[string]string{
			"v1": "by Fairlead for settings storage-network, taint-toleration, system-managed-components-node-selector, priority-class, " +
				"guaranteed-instance-manager-cpu; no engine or replica runs on it",
			"v2": "by Fairlead for settings storage-network, taint-toleration, system-managed-components-node-selector, priority-class, " +
				"v2-data-engine-guaranteed-instance-manager-cpu; no engine or replica runs on it",
		} {
			pod := c.instanceManager(node, engine)
			idle := node == "node-3" && engine == "v1" // it was restarted for each setting before
			if same := before[pod.Name] == string(pod.UID); same != idle {
				c.t.Errorf("%s of %s on %s is the same pod as before the last detach: %t", pod.Name, engine, node, same)
			}
			got := notes[pod.Name]
			times := fmt.Sprintf("%s of %s on %s was restarted %d times:\n%s", pod.Name, engine, node, len(got), strings.Join(got, "\n"))
			c.t.Log(times)
			if idle {
				if len(got) > 5 {
					c.t.Error(times)
				}
				continue
			}
			if len(got) != 1 || got[0] != due {
				c.t.Error(times)
			}
		}
	}
}

// listed wants one line of kubectl get that names what a setting waits for.
func (c *cluster) listed(cases []settingCase) {
	c.t.Helper()
	lines := strings.Split(c.kubectl("-n", namespace, "get", own), "\n")
	for _, is := range cases {
		i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, is.name+" ") })
		if i < 0 || is.waits != "" && (!strings.Contains(lines[i], " false ") || !strings.Contains(lines[i], is.waits)) {
			c.t.Errorf("kubectl get does not list that %s waits: %s\n%s", is.name, is.waits, strings.Join(lines, "\n"))
		}
	}
}

// refuseAll sets refused values.
func (c *cluster) refuseAll(cases []settingCase) {
	c.t.Helper()
	for _, is := range cases {
		if got, want := c.refusedSet(is.group, is.name, is.refused), fmt.Sprintf("The settings %q is invalid: %s\n", is.name, is.why); got != want {
			c.t.Errorf("%s=%s\ngot  %s\nwant %s", is.name, is.refused, got, want)
		}
	}
}

// setAll sets accepted values. The output depends on restarts for the settings before: so dry runs wait for the expected
// output before each change, and idle pods must be restarted after it.
func (c *cluster) setAll(cases []settingCase) {
	c.t.Helper()
	for _, is := range cases {
		saying := func(flags ...string) error {
			out, err := c.trySet(is.group, is.name, is.value, flags...)
			if err != nil || !strings.Contains(out, is.says) {
				return fmt.Errorf("%s=%s\ngot  %s\nwant %s", is.name, is.value, out, is.says)
			}
			return nil
		}
		c.eventually("output of a dry run", 60*time.Second, func() error { return saying("--dry-run=server") })
		if err := saying(); err != nil {
			c.t.Error(err)
		}
		if is.waits != "" {
			c.waitIdleRestarted(is)
		}
	}
}

// waitIdleRestarted waits until a setting waits for volumes alone: the idle instance manager, of v1 on node-3, has been
// restarted if it must be.
func (c *cluster) waitIdleRestarted(is settingCase) {
	c.t.Helper()
	c.eventually("restarts for "+is.name+" have ended", 60*time.Second, func() error {
		ours := c.settingStatuses()
		if s := ours[is.name]; s.value != is.value || s.phase == "" || s.phase == string(planner.PhaseRestarting) {
			return fmt.Errorf("%+v", s)
		}
		idle := c.instanceManagers("node-3", "v1")
		if len(idle) != 1 || idle[0].DeletionTimestamp != nil || idle[0].Status.Phase != corev1.PodRunning {
			return fmt.Errorf("%d instance managers of v1 on node-3, or one that does not run", len(idle))
		}
		return nil
	})
}

// settingStatus is the status of Fairlead's own setting. Its phase is empty before the controller has written it.
type settingStatus struct {
	applied              bool
	phase, reason, value string
}

// waitSettings waits until the status of all settings is good.
func (c *cluster) waitSettings(what string, within time.Duration, cases []settingCase, good func(settingStatus, settingCase) bool) {
	c.t.Helper()
	c.eventually(what, within, func() error {
		ours := c.settingStatuses()
		var bad []error
		for _, is := range cases {
			if s := ours[is.name]; !good(s, is) || is.value != "" && s.value != is.value {
				bad = append(bad, fmt.Errorf("%s: %+v", is.name, s))
			}
		}
		return errors.Join(bad...)
	})
}

// settingStatuses of Fairlead's own settings by name.
func (c *cluster) settingStatuses() map[string]settingStatus {
	c.t.Helper()
	ours := map[string]settingStatus{}
	var list v1alpha1.SettingList
	c.must(c.Client.List(c.t.Context(), &list, client.InNamespace(namespace)))
	for _, s := range list.Items {
		status := settingStatus{applied: s.Status.Applied, value: s.Status.EffectiveValue}
		if c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionApplied); c != nil {
			status.phase, status.reason = c.Reason, c.Message
		}
		ours[s.Name] = status
	}
	return ours
}

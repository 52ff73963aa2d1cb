package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/plan"
)

// settingCase is one setting of the danger zone on the real control plane.
// Longhorn 1.7 has some of them; the others are Fairlead's own alone.
type settingCase struct {
	name, group string
	// refused value, and what kubectl says, word by word.
	refused, why string
	// value that is accepted, and what kubectl says somewhere in its answer.
	value, says string
	// waits: the status says so while volumes are attached. Empty: it does not wait.
	waits string
}

const (
	notANetwork = "must be <namespace>/<NetworkAttachmentDefinition> (in this cluster: kube-system/backup-net, kube-system/storage-net), or \"\" for the cluster network"
	notABool    = `must be "true" or "false"`
	ofV2Alone   = `, or one for each data engine as {"v2":`
	fromOne     = "must be a whole number from 1 to 60"
	fromZero    = "must be a whole number from 0 to 2147483647"
	notAMask    = "must be CPUs from 0 to 1023, as a hexadecimal mask like 0x3 or as a list like 0-1,5"
	// allOf them are attached, and what runs for two of them.
	allOf = "when these volumes are detached: pvc-1 (node-1, pod default/db-0), pvc-2 (node-2), pvc-rwx (node-2, pod default/web-0). Then "
	v1Of  = "the rest when these engines and replicas have stopped: pvc-1-e-0 (node-1), pvc-1-r-0 (node-2), pvc-rwx-e-0 (node-2). Then 2 instance managers restart"
	v2Of  = "accepted; will be applied when these engines and replicas have stopped: pvc-2-r-0 (node-1), pvc-2-e-0 (node-2), pvc-2-r-1 (node-3). Then 3 instance managers restart one by one"
)

func invalid(value, why string) string {
	return fmt.Sprintf("value: Invalid value: %q: %s", value, why)
}

// atOnce are the settings that wait for nothing.
var atOnce = []settingCase{
	{name: "concurrent-replica-rebuild-per-node-limit", group: system, refused: "-1", why: invalid("-1", fromZero), value: "3"},
	{name: "concurrent-backing-image-replenish-per-node-limit", group: system, refused: "many", why: invalid("many", fromZero), value: "0"},
	{name: "disable-snapshot-purge", group: system, refused: "true",
		why: `value: Forbidden: snapshots can't be kept from being purged while auto-cleanup-system-generated-snapshot is "true": set that to "false" first`, value: "true"},
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
		why:   invalid("fast", "there is no PriorityClass of that name (in this cluster: longhorn-critical, system-cluster-critical, system-node-critical), and no pod of it would start; create it first"),
		value: "system-node-critical", says: allOf, waits: "pvc-1 (node-1, pod default/db-0), pvc-2 (node-2), pvc-rwx"},
	{name: "guaranteed-instance-manager-cpu", group: system, refused: "41", why: invalid("41", `must be a number from 0 to 40, or one for each data engine as {"v1":"12","v2":"12"}`),
		value: "20", says: v1Of, waits: "pvc-1-e-0 (node-1)"},
	{name: "v2-data-engine-guaranteed-instance-manager-cpu", group: system, refused: "999", why: invalid("999", "must be a whole number from 1000 to 2147483647"),
		value: "2000", says: v2Of, waits: "pvc-2-r-0 (node-1)"},
}

// readOnly is Longhorn's own to write.
var readOnly = []settingCase{
	{name: "v2-data-engine-hugepage-limit", group: system, refused: "4096", why: "metadata.name: Forbidden: setting v2-data-engine-hugepage-limit is read-only: longhorn writes it by itself"},
}

// newer comes after the gated, one of which it replaces.
var newer = []settingCase{
	{name: "endpoint-network-for-rwx-volume", group: own, refused: "/nad", why: invalid("/nad", strings.Replace(notANetwork, " (", `: namespace "" is not a DNS label (`, 1)),
		value: netB, says: "accepted; will be applied when these RWX volumes are detached: pvc-rwx (node-2, pod default/web-0). Then 3 CSI plugin pods restart.", waits: "1 RWX volume attached: pvc-rwx"},
}

// engines are switched off last: under their volumes that is refused.
var engines = []settingCase{
	{name: "v1-data-engine", group: system, refused: "false",
		why:   "value: Forbidden: the v1 data engine can't be switched off while 2 volumes of it are attached: pvc-1 (node-1, pod default/db-0), pvc-rwx (node-2, pod default/web-0); stop what uses them, then try again",
		value: "false", says: "3 instance managers are removed"},
	{name: "v2-data-engine", group: system, refused: "false",
		why:   "value: Forbidden: the v2 data engine can't be switched off while 1 volume of it is attached: pvc-2 (node-2); stop what uses it, then try again",
		value: "false", says: "3 instance managers are removed"},
}

// refuseHomeless: a setting that this Longhorn does not have, and that Longhorn alone goes by, is refused.
func (c *cluster) refuseHomeless(tested []settingCase) {
	c.t.Helper()
	for _, d := range catalog.DangerZone() {
		if slices.ContainsFunc(tested, func(is settingCase) bool { return is.name == string(d.Name) }) {
			continue
		}
		if out, err := c.change(own, string(d.Name), d.Default); err == nil || !strings.Contains(out, "this longhorn does not have the setting") {
			c.t.Errorf("%s is neither tested nor refused: %s", d.Name, out)
		}
	}
	if out, err := c.change(own, "priority-class", "system-node-critical"); err == nil || !strings.Contains(out, "longhorn has this setting itself: set it in settings.longhorn.io") {
		c.t.Errorf("priority-class in Fairlead's group: %s", out)
	}
}

// TestEverySetting changes each setting of the danger zone: what is
// refused, what waits for what, and that the last detach brings all of it about,
// with one restart of each pod for all that had waited for the same.
func TestEverySetting(t *testing.T) {
	c := newCluster(t, options{webhooks: 1, controllers: 1, components: true})
	c.refuseHomeless(slices.Concat(atOnce, gated, readOnly, newer, engines))
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
	c.waitSettings("what waits for nothing", 30*time.Second, atOnce, func(s settingStatus, _ settingCase) bool { return s.applied })
	c.must(lh.Attach(t.Context(), "pvc-rwx", "node-2", "default/web-0"))

	c.refuseAll(slices.Concat(atOnce[:2], atOnce[3:], gated, readOnly, newer, engines))
	waits := func(s settingStatus, is settingCase) bool {
		return s.applied == (is.waits == "") && strings.Contains(s.reason, is.waits)
	}
	c.setAll(gated)
	c.waitSettings("what waits for volumes", 20*time.Second, gated, waits)
	c.listed(gated)
	c.setAll(newer)
	c.waitSettings("what waits for volumes", 20*time.Second, newer, waits)
	replaced := []settingCase{
		{name: "storage-network-for-rwx-volume-enabled", group: system, waits: "of no effect: endpoint-network-for-rwx-volume decides"},
	}
	c.waitSettings("what has no effect any more", 10*time.Second, replaced, func(s settingStatus, is settingCase) bool { return s.applied && s.reason == is.waits })

	before := c.componentPods()
	for _, volume := range []string{"pvc-1", "pvc-2", "pvc-rwx"} {
		c.must(lh.Detach(t.Context(), volume))
	}
	built := slices.DeleteFunc(slices.Concat(atOnce, gated, newer), func(is settingCase) bool { return is.name == replaced[0].name })
	c.waitSettings("the last detach applies all", 75*time.Second, built, func(s settingStatus, _ settingCase) bool { return s.applied })
	time.Sleep(20 * time.Second) // long enough to restart something once more
	c.restartedOnceForAll(before)

	c.setAll(engines)
	c.waitSettings("engines off", 30*time.Second, engines, func(s settingStatus, _ settingCase) bool { return s.applied })
	if left := c.pods(map[string]string{"longhorn.io/component": "instance-manager"}); len(left) > 0 {
		t.Errorf("%d instance managers are left", len(left))
	}
}

// restartedOnceForAll: every instance manager that was in use came back once for
// all that waited for the same.
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
			pod := c.instanceManagerPod(node, engine)
			idle := node == "node-3" && engine == "v1" // it was restarted for each setting as it came, and not once more
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

// listed: kubectl get shows on one line that a setting waits, and for what.
func (c *cluster) listed(cases []settingCase) {
	c.t.Helper()
	lines := strings.Split(c.kubectl("-n", namespace, "get", own), "\n")
	for _, is := range cases {
		i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, is.name+" ") })
		if i < 0 || is.waits != "" && (!strings.Contains(lines[i], " false ") || !strings.Contains(lines[i], is.waits)) {
			c.t.Errorf("kubectl get does not say that %s waits: %s\n%s", is.name, is.waits, strings.Join(lines, "\n"))
		}
	}
}

// refuseAll changes settings to what is refused.
func (c *cluster) refuseAll(cases []settingCase) {
	c.t.Helper()
	c.each(cases, func(is settingCase) error {
		out, err := c.change(is.group, is.name, is.refused)
		want := fmt.Sprintf("The settings %q is invalid: %s\n", is.name, is.why)
		if err == nil || out != want {
			return fmt.Errorf("%s=%s\ngot  %s\nwant %s", is.name, is.refused, out, want)
		}
		return nil
	})
}

// setAll changes settings to what is accepted. What is said depends on what is
// being restarted at that moment for those before: each is waited for until all
// that needs no detach is restarted for it, and each first waits, by dry runs,
// until it would be said. Only what was really said counts.
func (c *cluster) setAll(cases []settingCase) {
	c.t.Helper()
	for _, is := range cases {
		saying := func(flags ...string) error {
			out, err := c.change(is.group, is.name, is.value, flags...)
			if err != nil || !strings.Contains(out, is.says) {
				return fmt.Errorf("%s=%s\ngot  %s\nwant %s", is.name, is.value, out, is.says)
			}
			return nil
		}
		c.eventually("what a change would say", 60*time.Second, func() error { return saying("--dry-run=server") })
		if err := saying(); err != nil {
			c.t.Error(err)
		}
		if is.waits != "" {
			c.waitIdleRestarted(is)
		}
	}
}

// waitIdleRestarted waits until a setting waits for volumes alone: the one instance
// manager without engines and replicas, that of v1 on node-3, is restarted for it, if
// it is to be. That comes a moment after the change; a dry run could come before.
func (c *cluster) waitIdleRestarted(is settingCase) {
	c.t.Helper()
	c.eventually("nothing is restarted for "+is.name, 60*time.Second, func() error {
		ours := c.settingStatuses()
		if s := ours[is.name]; s.value != is.value || s.phase == "" || s.phase == string(plan.PhaseRestarting) {
			return fmt.Errorf("%+v", s)
		}
		idle := c.pods(map[string]string{"longhorn.io/component": "instance-manager", "longhorn.io/node": "node-3", "longhorn.io/data-engine": "v1"})
		if len(idle) != 1 || idle[0].DeletionTimestamp != nil || idle[0].Status.Phase != corev1.PodRunning {
			return fmt.Errorf("%d instance managers of v1 on node-3, or not running", len(idle))
		}
		return nil
	})
}

func (c *cluster) change(group, name, value string, flags ...string) (string, error) {
	args := []string{"-n", namespace, "patch", group, name, "--type=merge", "-p", fmt.Sprintf(`{"value":%q}`, value)}
	return c.Kubectl(c.t.Context(), "", append(args, flags...)...)
}

// each does it for all, some at a time.
func (c *cluster) each(cases []settingCase, do func(settingCase) error) {
	c.t.Helper()
	var group errgroup.Group
	group.SetLimit(4)
	for _, is := range cases {
		group.Go(func() error {
			if err := do(is); err != nil {
				c.t.Error(err)
			}
			return nil
		})
	}
	_ = group.Wait() // each has told what is wrong
}

// settingStatus is what is told of a setting.
type settingStatus struct {
	applied bool
	// phase is empty where nothing is told yet.
	phase, reason, value string
}

// waitSettings waits until all are as they should be.
func (c *cluster) waitSettings(what string, within time.Duration, cases []settingCase, good func(settingStatus, settingCase) bool) {
	c.t.Helper()
	c.eventually(what, within, func() error {
		ours := c.settingStatuses()
		var bad []string
		for _, is := range cases {
			if s := ours[is.name]; !good(s, is) || is.value != "" && s.value != is.value {
				bad = append(bad, fmt.Sprintf("%s: %+v", is.name, s))
			}
		}
		if len(bad) > 0 {
			return fmt.Errorf("%s", strings.Join(bad, "\n"))
		}
		return nil
	})
}

// settingStatuses are those of Fairlead's own settings by name.
func (c *cluster) settingStatuses() map[string]settingStatus {
	c.t.Helper()
	ours := map[string]settingStatus{}
	var list v1alpha1.SettingList
	c.must(c.Client.List(c.t.Context(), &list, client.InNamespace(namespace)))
	for _, s := range list.Items {
		status := settingStatus{applied: s.Status.Applied, reason: "not told yet", value: s.Status.EffectiveValue}
		if told := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionApplied); told != nil {
			status.phase, status.reason = told.Reason, told.Message
		}
		ours[s.Name] = status
	}
	return ours
}

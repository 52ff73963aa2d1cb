package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/dangerzone"
	"github.com/fairlead-io/fairlead/e2e/invariants"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// TestDangerZoneOfNewerReleases changes settings of the danger zone with volumes attached and detached, alone and together,
// where Longhorn builds by value. Nothing in use restarts, nothing idle restarts twice, and applied is never early.
func TestDangerZoneOfNewerReleases(t *testing.T) {
	versions := []string{"v1.10.0", "v1.12.1"}
	if long { // their core rows are among those of 1.12.1
		versions = append(versions, "v1.11.1", "v1.12.0")
	}
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			c := newCluster(t, options{webhooks: 1, controllers: 1, components: true, syncs: true, longhorn: version, auditWrites: true})
			z := &zone{cluster: c, replay: invariants.NewReplay(), before: map[string]string{}}
			var list longhorn.SettingList
			c.must(c.Client.List(t.Context(), &list, client.InNamespace(namespace)))
			for _, s := range list.Items {
				z.before[s.Name] = s.Value
			}
			z.other = map[string]string{}
			for _, d := range catalog.DangerZone() {
				if _, has := z.before[string(d.Name)]; !has {
					continue
				}
				if len(zoneValues[string(d.Name)]) == 0 {
					t.Fatalf("zoneValues has no %s", d.Name)
				}
				z.other[string(d.Name)] = zoneValues[string(d.Name)][0]
			}
			c.kubectl("label", "nodes", "--all", "disktype=ssd")
			c.set(system, "auto-cleanup-system-generated-snapshot", "false") // disable-snapshot-purge contradicts it
			for _, v := range zoneVolumes {
				c.must(c.Longhorn().CreateVolume(t.Context(), v.Volume))
			}
			for _, row := range zoneRows(z.before) {
				c.run(row.Name(), func(_ *testing.T, c *cluster) {
					z.cluster = c
					z.change(row)
				})
			}
		})
	}
}

// zoneVolumes run on node-1 and node-2; the instance managers of node-3 are idle.
var zoneVolumes = map[string]struct {
	standin.Volume
	node, engine string
}{
	"rwo": {standin.Volume{Name: "pvc-rwo", ReplicaNodes: []string{"node-2"}}, "node-1", "v1"},
	"rwx": {standin.Volume{Name: "pvc-rwx", Shared: true, ReplicaNodes: []string{"node-1"}}, "node-2", "v1"},
	"v2":  {standin.Volume{Name: "pvc-v2", Engine: "v2", ReplicaNodes: []string{"node-2"}}, "node-1", "v2"},
}

// zone is the cluster for one row.
type zone struct {
	*cluster
	replay *invariants.Replay
	// before are the values of settings before all rows, other those of zoneValues.
	before, other map[string]string
}

func (z *zone) change(row dangerzone.Row) {
	z.t.Helper()
	z.setAll(row.Given, z.other)
	z.waitZone(row.Given, z.other)
	for _, name := range row.Attached {
		v := zoneVolumes[name]
		z.must(z.Longhorn().Attach(z.t.Context(), v.Name, v.node, "default/web"))
	}
	used := z.inUse(row.Attached)
	z.follow(row.Settings)

	start := len(z.writes())
	refused := z.setAll(row.Settings, z.other)
	z.waitQuiet()
	z.judgeInUse(used, start)
	for name, progress := range z.follow(row.Settings) {
		z.judgeApplied(name, progress, true)
		if last := progress[len(progress)-1]; len(last.Missing) > 0 && last.Reported {
			z.t.Errorf("%s is reported as applied, and %v", name, last.Missing)
		}
	}
	for _, name := range row.Attached {
		z.must(z.Longhorn().Detach(z.t.Context(), zoneVolumes[name].Name))
	}
	if refused {
		z.setAll(row.Settings, z.other)
	}
	z.judge(row, z.other, start)

	start = len(z.writes())
	z.setAll(row.Settings, z.before)
	z.judge(row, z.before, start)
	z.setAll(row.Given, z.before)
	z.waitZone(row.Given, z.before)
}

// setAll changes settings one after the other. A data engine with attached volumes may not be switched off.
func (z *zone) setAll(names []string, values map[string]string) (refused bool) {
	z.t.Helper()
	for _, name := range names {
		out, err := z.trySet(system, name, values[name])
		if err != nil && name == "v1-data-engine" && strings.Contains(out, "can't be switched off while") {
			refused = true
			continue
		}
		z.must(err)
	}
	return refused
}

// judge waits until the values are applied, and judges the way there.
func (z *zone) judge(row dangerzone.Row, values map[string]string, start int) {
	z.t.Helper()
	z.waitZone(row.Settings, values)
	z.waitQuiet()
	for name, progress := range z.follow(row.Settings) {
		z.judgeApplied(name, progress, false)
		if last := progress[len(progress)-1]; len(last.Missing) > 0 || !last.Applied {
			z.t.Errorf("in the end %s has applied: %v, and %v", name, last.Applied, last.Missing)
		}
	}
	restarts, err := invariants.CountRestarts(z.writes()[start:])
	z.must(err)
	z.t.Logf("restarted: %v", restarts)
	for _, kind := range restarts.MoreThan(len(row.Settings)) {
		z.t.Errorf("%s restarted %d times", kind, restarts[kind])
	}
}

// judgeApplied wants applied to become true only when nothing is missing. Longhorn writes it once it has issued all updates,
// and the stand-in at once for settings that have no gate there.
func (z *zone) judgeApplied(name string, progress []invariants.Progress, attached bool) {
	z.t.Helper()
	d, _ := catalog.Lookup(name)
	gated := d.Gate == catalog.AllVolumesDetached || d.Gate == catalog.SharedVolumesDetached
	_, wrong := invariants.Early(name, progress, !(attached && gated))
	for _, text := range wrong {
		z.t.Error(text)
	}
}

// inUse are the pods that attached volumes need, by name.
func (z *zone) inUse(attached []string) map[string]corev1.Pod {
	z.t.Helper()
	used := map[string]corev1.Pod{}
	for _, name := range attached {
		v := zoneVolumes[name]
		for _, node := range []string{"node-1", "node-2"} {
			pod := z.instanceManager(node, v.engine)
			used[pod.Name] = pod
		}
		if v.Shared {
			server := z.server(v.Name)
			used[server.Name] = *server
			for _, pod := range z.clients() {
				if pod.Spec.NodeName == v.node {
					used[pod.Name] = pod
				}
			}
		}
	}
	return used
}

// judgeInUse wants the same pods in use.
func (z *zone) judgeInUse(used map[string]corev1.Pod, start int) {
	z.t.Helper()
	for name, pod := range used {
		var now corev1.Pod
		err := z.Client.Get(z.t.Context(), client.ObjectKeyFromObject(&pod), &now)
		if err == nil && now.UID == pod.UID && now.DeletionTimestamp == nil {
			continue
		}
		deletes := slices.DeleteFunc(slices.Clone(z.writes()[start:]), func(w sandbox.Write) bool {
			return w.Object() != "pods/"+name || w.Verb != "delete" && w.Resource != "pods/eviction"
		})
		z.t.Errorf("pod %s was deleted while in use: %v", name, deletes)
	}
}

// waitZone waits until settings have these values, and both Longhorn and Fairlead report them as applied.
func (z *zone) waitZone(names []string, values map[string]string) {
	z.t.Helper()
	z.eventually("settings are applied", 60*time.Second, func() error {
		statuses := z.settingStatuses()
		var missing []error
		for _, name := range names {
			var setting longhorn.Setting
			if err := z.Client.Get(z.t.Context(), key(name), &setting); err != nil {
				return err
			}
			if s := statuses[name]; !setting.Status.Applied || !s.applied || s.value != values[name] {
				missing = append(missing, fmt.Errorf("%s: Longhorn says %t, Fairlead %+v", name, setting.Status.Applied, s))
			}
		}
		return errors.Join(missing...)
	})
}

// waitQuiet waits until pods, templates and settings have not changed for a while.
func (z *zone) waitQuiet() {
	z.t.Helper()
	z.comesToRest("pods, templates and settings", dangerzone.Quiet, func() string {
		changes := 0
		for _, w := range z.writes() {
			if dangerzone.Changes(w) {
				changes++
			}
		}
		return fmt.Sprint(changes)
	})
}

func (z *zone) writes() []sandbox.Write {
	z.t.Helper()
	writes, err := z.ReadWrites()
	z.must(err)
	return writes
}

func (z *zone) follow(names []string) map[string][]invariants.Progress {
	z.t.Helper()
	return z.replay.Follow(z.writes(), names...)
}

package beside

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/e2e/invariants"
)

// zoneValues are all settings of the danger zone of v1.7.2 (types/setting.go), each with another value than its default.
var zoneValues = map[string][2]string{
	"taint-toleration":                                  {"", "dedicated=storage:NoSchedule"},
	"system-managed-components-node-selector":           {"", "kubernetes.io/os:linux"},
	priorityClass:                                       {priorityClasses[0], priorityClasses[1]},
	StorageNetwork:                                      {"", NetworkA},
	StorageNetworkForRWX:                                {"false", "true"},
	"guaranteed-instance-manager-cpu":                   {"12", "20"},
	"v1-data-engine":                                    {"true", "false"},
	"v2-data-engine":                                    {"false", "true"},
	"v2-data-engine-guaranteed-instance-manager-cpu":    {"1250", "2000"},
	"disable-snapshot-purge":                            {"false", "true"},
	"concurrent-replica-rebuild-per-node-limit":         {"5", "3"},
	"concurrent-backing-image-replenish-per-node-limit": {"5", "3"},
}

// zoneRow changes settings one after the other, without waiting, and back again.
type zoneRow struct {
	settings []string
	// given have their other value all the time.
	given []string
	// attached are the volumes that are attached at the change. None is at the change back.
	attached []string
}

func (r zoneRow) name() string {
	return strings.Join(r.settings, "+") + " " + strings.Join(r.attached, "+")
}

const (
	tolerations  = "taint-toleration"
	nodeSelector = "system-managed-components-node-selector"
	managerCPU   = "guaranteed-instance-manager-cpu"
	v2Engine     = "v2-data-engine"
	v2CPU        = "v2-data-engine-guaranteed-instance-manager-cpu"
	autoCleanup  = "auto-cleanup-system-generated-snapshot"
)

func zoneRows() []zoneRow {
	own, both, onNetwork := []string{"rwo"}, []string{"rwo", "rwx"}, []string{StorageNetwork}
	rows := []zoneRow{
		{settings: []string{StorageNetwork}, attached: both},
		{settings: []string{StorageNetworkForRWX}, given: onNetwork, attached: both},
		{settings: []string{v2CPU}, given: []string{v2Engine}, attached: own},
		// An instance manager in use is not restarted, and an RWX volume moves with its CSI plugin pods only.
		{settings: []string{StorageNetwork, StorageNetworkForRWX}, attached: own},
		{settings: []string{StorageNetwork, StorageNetworkForRWX}, attached: both},
		{settings: []string{StorageNetworkForRWX, StorageNetwork}, attached: own},
	}
	for _, name := range []string{
		tolerations, nodeSelector, priorityClass, managerCPU, "v1-data-engine", v2Engine, "disable-snapshot-purge",
		"concurrent-replica-rebuild-per-node-limit", "concurrent-backing-image-replenish-per-node-limit",
	} {
		rows = append(rows, zoneRow{settings: []string{name}, attached: own})
	}
	restarting := []string{tolerations, nodeSelector, priorityClass, managerCPU}
	for i, name := range restarting {
		rows = append(rows,
			zoneRow{settings: []string{StorageNetwork, name}, attached: own},
			zoneRow{settings: []string{StorageNetworkForRWX, name}, given: onNetwork, attached: both})
		for _, other := range restarting[i+1:] {
			rows = append(rows, zoneRow{settings: []string{name, other}, attached: own})
		}
	}
	return rows
}

// TestDangerZone changes every setting of the danger zone with volumes attached and with none, alone and two at a time.
// Nothing in use may be restarted, nothing idle twice, and applied is true only when it is.
func TestDangerZone(t *testing.T) {
	table := &zoneTable{}
	eachWay(t, func(s scene) {
		z := &zone{table: table, replay: invariants.NewReplay()}
		for _, mode := range []string{"rwo", "rwx"} {
			s.must(s.CreateVolume(s.ctx, zoneVolume(mode), mode))
		}
		s.set(autoCleanup, "false") // disable-snapshot-purge contradicts it
		s.Cleanup(func() { s.must(s.Set(context.WithoutCancel(s.ctx), autoCleanup, "true")) })
		for _, row := range zoneRows() {
			s.Run(row.name(), func(t *testing.T) {
				z.scene = scene{Cluster: s.Cluster, T: t, ctx: t.Context()}
				z.change(row)
			})
		}
	})
	t.Logf("What was restarted, how often, and when it was applied:\n%s", table)
}

func zoneVolume(mode string) string { return "pvc-zone-" + mode }

// zone is the cluster for one row.
type zone struct {
	scene
	table  *zoneTable
	replay *invariants.Replay
}

func (z *zone) change(row zoneRow) {
	z.Helper()
	z.Cleanup(func() { z.reset(row) })
	for _, name := range row.given {
		z.set(name, zoneValues[name][1])
	}
	z.settle(row.given, 1)
	for _, mode := range row.attached {
		z.must(z.Use(z.ctx, zoneVolume(mode)))
	}
	for _, mode := range row.attached {
		z.waitUsed(mode)
	}
	used := z.inUse(row.attached)
	z.follow(row.settings)

	start := z.mark()
	refused := z.trySetAll(row.settings)
	z.waitQuiet(start)
	found := z.judgeInUse(used, start)
	for name, progress := range z.follow(row.settings) {
		z.judgeApplied(name, progress, len(row.attached) > 0)
		if last := progress[len(progress)-1]; len(last.Missing) > 0 && (last.Applied || last.Reported) {
			z.report(fmt.Errorf("%s is applied: %v, reported as applied: %v, and %v", name, last.Applied, last.Reported, last.Missing))
		}
	}
	began := time.Now()
	for _, mode := range row.attached {
		z.must(z.Unuse(z.ctx, zoneVolume(mode)))
	}
	for _, mode := range row.attached {
		z.release(zoneVolume(mode))
	}
	if refused {
		z.setAll(row.settings, 1)
	}
	when := z.waitZone(row.settings, 1, began)
	if refused {
		when = "refused; afterwards " + when
	}
	z.judge(row, zoneAttached, found, start, when)

	start, began = z.mark(), time.Now()
	z.setAll(row.settings, 0)
	z.judge(row, zoneNone, nil, start, z.waitZone(row.settings, 0, began))
}

// waitUsed waits until the workload of a volume can use it. Longhorn looks every 30 s whether an RWX
// volume is attached, and at each write of its ShareManager.
func (z *zone) waitUsed(mode string) {
	z.Helper()
	name := zoneVolume(mode)
	if mode == "rwx" {
		written := time.Time{}
		z.must(z.Eventually(z.ctx, name+" to be mountable", attachTimeout, func() error {
			if time.Since(written) > 2*time.Second {
				written = time.Now()
				if out, err := z.Kubectl(z.ctx, "", "-n", Namespace, "annotate", "--overwrite", "sharemanagers.longhorn.io", name, fmt.Sprintf("test.fairlead.io/look=%d", written.Unix())); err != nil {
					z.Logf("%v: %s", err, out) // it may not be there yet
				}
			}
			return z.Mountable(z.ctx, name)
		}))
	}
	z.must(z.WaitVolume(z.ctx, name, "attached"))
	z.must(z.waitAttachment(name, true))
}

// trySetAll changes settings while volumes are attached, each when Longhorn waits with the one before.
// A data engine with attached volumes may not be switched off.
func (z *zone) trySetAll(settings []string) (refused bool) {
	z.Helper()
	for i, name := range settings {
		if i > 0 && settings[0] != StorageNetworkForRWX {
			z.must(z.WaitApplied(z.ctx, settings[i-1], false, settleTimeout))
		}
		err := z.Set(z.ctx, name, zoneValues[name][1])
		if err == nil || name != "v1-data-engine" {
			z.must(err)
			continue
		}
		z.Logf("refused: %v", err)
		refused = true
	}
	return refused
}

// setAll changes settings one after the other.
func (z *zone) setAll(settings []string, to int) {
	z.Helper()
	for _, name := range settings {
		z.set(name, zoneValues[name][to])
	}
}

// judge counts what was restarted since, and enters it in the table.
func (z *zone) judge(row zoneRow, volumes string, inUse []string, start Mark, when string) {
	z.Helper()
	z.waitQuiet(start)
	var early time.Duration
	for name, progress := range z.follow(row.settings) {
		early = max(early, z.judgeApplied(name, progress, false))
		last := progress[len(progress)-1]
		if len(last.Missing) > 0 || !last.Applied {
			z.report(fmt.Errorf("in the end %s has applied: %v, and %v", name, last.Applied, last.Missing))
		}
	}
	restarts := z.restarts(start)
	for _, kind := range restarts.twice(len(row.settings)) {
		z.report(fmt.Errorf("%s restarted %d times", kind, restarts[kind]))
	}
	if early > 0 {
		when += fmt.Sprintf(", said %s early", early.Round(100*time.Millisecond))
	}
	z.table.enter(row, volumes, one.installed, inUse, restarts, when)
}

// judgeApplied wants that applied turns true only when nothing is missing. When nothing is attached, Longhorn
// says so once it has issued all updates; how long that was too early is returned.
func (z *zone) judgeApplied(name string, progress []invariants.Progress, attached bool) (early time.Duration) {
	z.Helper()
	for i, p := range progress {
		if i == 0 || len(p.Missing) == 0 {
			continue
		}
		before := progress[i-1]
		turned := p.Applied && !before.Applied && p.Value == before.Value
		if turned && p.By == serviceAccount && !attached {
			early = max(early, completed(progress[i:]).Sub(p.At))
		} else if turned || p.Reported && !before.Reported {
			z.report(fmt.Errorf("%s: %s wrote that %s=%q is applied, and %v", p.At.Format("15:04:05.000"), p.By, name, p.Value, p.Missing))
		}
	}
	return early
}

// completed is when nothing was missing any more.
func completed(progress []invariants.Progress) time.Time {
	i := slices.IndexFunc(progress, func(p invariants.Progress) bool { return len(p.Missing) == 0 })
	if i < 0 {
		i = len(progress) - 1
	}
	return progress[i].At
}

// waitZone waits until the settings are applied, and says when they were.
func (z *zone) waitZone(settings []string, to int, began time.Time) string {
	z.Helper()
	check := func() error { return z.appliedZone(settings, to) }
	if one.installed {
		z.must(z.Eventually(z.ctx, "the settings to be applied", settleTimeout, check))
	} else if z.Eventually(z.ctx, "the settings to be applied", zoneLongEnough, check) != nil {
		tried := time.Time{}
		z.must(z.Eventually(z.ctx, "Longhorn to look again and apply the settings", settleTimeout, func() error {
			err := check()
			if err == nil || time.Since(tried) < retryEvery {
				return err
			}
			tried = time.Now()
			for _, name := range settings {
				err = errors.Join(err, z.Retry(z.ctx, name))
			}
			return err
		}))
		return "within the hour"
	}
	return time.Since(began).Round(time.Second).String()
}

// zoneLongEnough for Longhorn alone: what it has not applied by then, it leaves until it looks again.
const zoneLongEnough = 8 * time.Second

// settle waits until settings that were set are applied.
func (z *zone) settle(settings []string, to int) {
	z.Helper()
	if len(settings) == 0 {
		return
	}
	start := z.mark()
	z.waitZone(settings, to, time.Now())
	z.waitQuiet(start)
}

// reset takes back what a row has changed, also where it failed.
func (z *zone) reset(row zoneRow) {
	z.ctx = context.WithoutCancel(z.ctx)
	if !z.Failed() && len(row.given) == 0 {
		return // all is as before
	}
	for _, mode := range []string{"rwo", "rwx"} {
		z.must(z.Unuse(z.ctx, zoneVolume(mode)))
	}
	settings := slices.Concat(row.settings, row.given)
	z.setAll(settings, 0)
	z.settle(settings, 0)
}

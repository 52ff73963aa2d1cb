package beside

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/e2e/eventually"
	"github.com/fairlead-io/fairlead/e2e/invariants"
)

// TestDangerZone changes every setting of the danger zone with volumes attached and with none, alone and two at a time.
// Nothing in use may be restarted, nothing idle twice, and applied is true only when it is.
func TestDangerZone(t *testing.T) {
	table := &zoneTable{}
	eachWay(t, func(s scene) {
		s.changesAllOfZone()
		z := &zone{table: table, replay: invariants.NewReplay()}
		for _, mode := range []string{"rwo", "rwx"} {
			s.must(s.CreateVolume(s.ctx, zoneVolume(mode), mode))
		}
		s.set(autoCleanup, "false") // disable-snapshot-purge contradicts it
		s.Cleanup(func() { s.must(s.Set(context.WithoutCancel(s.ctx), autoCleanup, "true")) })
		for _, row := range zoneRows(s.Version.Zone) {
			s.Run(row.name(), func(t *testing.T) {
				z.scene = scene{Cluster: s.Cluster, T: t, ctx: t.Context()}
				z.change(row)
			})
		}
	})
	t.Logf("What was restarted, how often, and when it was applied:\n%s", table)
}

// changesAllOfZone compares the rows with the settings that Longhorn's own interface has in the danger zone.
func (s scene) changesAllOfZone() {
	s.Helper()
	var answer struct {
		Data []struct {
			Name       string
			Definition struct{ Category string }
		}
	}
	s.must(s.Manager.call(s.ctx, http.MethodGet, "settings", nil, &answer))
	want, changed := map[string]bool{}, map[string]bool{}
	for _, name := range s.Version.Fixed {
		changed[name] = true
	}
	for _, setting := range answer.Data {
		if setting.Definition.Category == "danger Zone" {
			want[setting.Name] = true
		}
	}
	for _, row := range zoneRows(s.Version.Zone) {
		for _, name := range row.settings {
			changed[s.settingName(name)] = true
		}
	}
	if !maps.Equal(changed, want) {
		s.Errorf("the rows change %v, and the danger zone of Longhorn is %v", slices.Sorted(maps.Keys(changed)), slices.Sorted(maps.Keys(want)))
	}
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
	z.forgetBackOff()
	for _, name := range row.given {
		z.set(name, z.Version.Zone[name][1])
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
		last := progress[len(progress)-1]
		if len(last.Missing) > 0 && (last.Applied && !slices.Contains(z.Version.AppliedStays, name) || last.Reported) {
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
		z.must(eventually.Until(z.ctx, name+" to be mountable", attachTimeout, func() error {
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
		err := z.Set(z.ctx, name, z.Version.Zone[name][1])
		if err == nil || name != v1Engine {
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
		z.set(name, z.Version.Zone[name][to])
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
	for _, kind := range restarts.moreThan(row.allowed(volumes)) {
		if volumes == zoneNone && kind == invariants.InstanceManager && !z.deletedByFairlead(start) {
			z.Logf("%s restarted %d times, by Longhorn alone", kind, restarts[kind])
			continue
		}
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
		z.must(eventually.Until(z.ctx, "the settings to be applied", settleTimeout, check))
	} else if eventually.Until(z.ctx, "the settings to be applied", zoneLongEnough, check) != nil {
		tried := time.Time{}
		z.must(eventually.Until(z.ctx, "Longhorn to look again and apply the settings", settleTimeout, func() error {
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

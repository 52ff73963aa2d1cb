package planner

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// PhaseRestarting: components are being restarted or rolled.
const PhaseRestarting rollout.Phase = "Restarting"

func (t *track) count(kind catalog.ComponentKind, updated, total int) {
	i := slices.IndexFunc(t.progress, func(p KindProgress) bool { return p.Kind == kind })
	if i < 0 {
		i = len(t.progress)
		t.progress = append(t.progress, KindProgress{Kind: kind})
	}
	t.progress[i].Updated += updated
	t.progress[i].Total += total
}

// block adds blockers. Components share slices of blockers; each slice counts once.
func (t *track) block(blockers []catalog.Blocker) {
	if t.listed == nil {
		t.listed = map[*catalog.Blocker]bool{}
	}
	if len(blockers) > 0 && !t.listed[&blockers[0]] {
		t.listed[&blockers[0]] = true
		t.blockers = append(t.blockers, blockers...)
	}
}

// settled returns the state of the setting on components.
func (t *track) settled(m *maker) SettingPlan {
	s := SettingPlan{Name: t.Name, Value: t.value, Built: !t.pending, Progress: t.progress, Blockers: volumesFirst(t.blockers)}
	switch {
	case t.invalid != nil:
		s.Phase, s.Message = rollout.PhaseInvalid, notApplied(t.invalid)
	case t.Wants == nil:
		s.Applied, s.Phase, s.Message = true, rollout.PhaseApplied, "in effect"
	case !t.demanded:
		s.Applied, s.Phase, s.Message = true, rollout.PhaseApplied, "default; not set anywhere"
	case !t.pending:
		s.Applied, s.Phase, s.Message = true, rollout.PhaseApplied, "every component has the value"
		if len(t.progress) == 0 && t.excluded {
			s.Message = "in effect"
		} else if len(t.progress) == 0 {
			s.Message = "in effect; no component of this kind exists"
		}
	default:
		s.Phase = rollout.PhaseWaiting
		if t.now || !t.closed {
			s.Phase = PhaseRestarting
		}
		starting := s.Phase == PhaseRestarting && len(s.Blockers) == 0
		if starting {
			s.Blockers = m.plan.Starting
		}
		if s.Effect = m.plan.describe(t.Name); s.Effect == "" {
			s.Message = rollingMessage(s)
			break
		}
		s.Message = s.Effect
		if slices.ContainsFunc(t.progress, func(p KindProgress) bool { return p.Updated > 0 }) {
			s.Message += "; so far " + summary(t.progress)
		}
		if starting && len(s.Blockers) > 0 {
			s.Message += "; " + catalog.Short(s.Blockers)
		}
	}
	if t.excluded {
		s.Message += "; excluded by the node selector: " + catalog.FirstOf(slices.Sorted(maps.Keys(m.excluded)))
	}
	return s
}

func notApplied(err error) string {
	return fmt.Sprintf("not applied until the value is corrected: %v", err)
}

func rollingMessage(s SettingPlan) string {
	message := summary(s.Progress)
	if message == "" {
		message = "no component is rolled out yet"
	}
	if len(s.Blockers) > 0 {
		message += "; " + catalog.Short(s.Blockers)
	}
	return message
}

// summary: `2 of 3 instance managers, 1 of 4 Deployment pods`.
func summary(progress []KindProgress) string {
	var parts []string
	for _, p := range progress {
		if p.Total == 0 {
			continue
		}
		noun := p.Kind.Noun()
		if p.Kind == catalog.Deployment || p.Kind == catalog.DaemonSetComponent {
			noun += " pod"
		}
		parts = append(parts, fmt.Sprintf("%d of %s", p.Updated, catalog.Count(p.Total, noun)))
	}
	return strings.Join(parts, ", ")
}

// addNetwork adds the state of the network for RWX volumes to the settings that choose the network.
func (m *maker) addNetwork(s *SettingPlan) {
	if s.Phase == rollout.PhaseInvalid {
		return
	}
	if !m.choosesNetwork(s.Name) {
		if s.Name == catalog.StorageNetworkForRWX {
			s.Message = fmt.Sprintf("no effect: %s takes precedence", catalog.EndpointNetworkForRWX)
		}
		return
	}
	s.ChoosesNetwork = true
	step := m.plan.Network
	if step.Phase == rollout.PhaseInvalid {
		s.Applied, s.Phase, s.Message = false, step.Phase, step.Message
		return
	}
	switch {
	case s.Applied && step.Applied:
		if s.Name != catalog.StorageNetwork || len(s.Progress) == 0 {
			s.Message = step.Message
		} else {
			s.Message += "; " + step.Message
		}
	case s.Applied:
		s.Applied, s.Phase, s.Message = false, step.Phase, step.Message
	case !step.Applied && waitsForVolumes(s.Blockers) && waitsForVolumes(step.Blockers):
		return // the blockers are all volumes, which include the RWX volumes
	case !step.Applied:
		step = withoutWindow(step, s.Blockers)
		s.Message = catalog.Joined(step.Message, s.Message)
	}
	s.Blockers = slices.Concat(step.Blockers, s.Blockers)
}

// withoutWindow leaves out the maintenance window if components wait for the window too.
func withoutWindow(step rollout.Step, components []catalog.Blocker) rollout.Step {
	if step.Action != rollout.Nothing { // the message has more than the window
		return step
	}
	for _, b := range components {
		if b.Kind == catalog.BlockedByTime {
			step.Message = strings.TrimSuffix(strings.TrimSuffix(step.Message, b.Message), "; ")
			step.Blockers = slices.DeleteFunc(slices.Clone(step.Blockers), func(o catalog.Blocker) bool { return o.Kind == b.Kind && o.Name == b.Name })
		}
	}
	return step
}

// volumesFirst sorts volumes by name before other blockers, and removes duplicates: a volume may
// block both its share manager and a setting that waits for all volumes.
func volumesFirst(blockers []catalog.Blocker) []catalog.Blocker {
	slices.SortStableFunc(blockers, func(a, b catalog.Blocker) int {
		if a.Kind == catalog.BlockedByVolume && b.Kind == catalog.BlockedByVolume {
			return strings.Compare(a.Name, b.Name)
		}
		return cmp.Compare(rank(a), rank(b))
	})
	return slices.CompactFunc(blockers, func(a, b catalog.Blocker) bool {
		return a.Kind == catalog.BlockedByVolume && b.Kind == catalog.BlockedByVolume && a.Name == b.Name
	})
}

func rank(b catalog.Blocker) int {
	if b.Kind == catalog.BlockedByVolume {
		return 0
	}
	return 1
}

func waitsForVolumes(blockers []catalog.Blocker) bool {
	return len(blockers) > 0 && blockers[0].Kind == catalog.BlockedByVolume
}

// choosesNetwork reports whether the setting decides the network for RWX volumes, or has chosen
// the network that clients are still on. The endpoint setting takes precedence if it is set.
// storage-network counts only while the older RWX setting is on.
func (m *maker) choosesNetwork(name catalog.Name) bool {
	endpoint := strings.TrimSpace(m.Values[catalog.EndpointNetworkForRWX].Text) != ""
	chose := func(networkInterface string) bool {
		clients := m.Rollout.Record.Clients
		return !clients.IsZero() && clients.Interface == networkInterface
	}
	switch name {
	case catalog.EndpointNetworkForRWX:
		return endpoint || chose(m.Names.EndpointInterface) || m.tracks[m.index[name]].rolling
	case catalog.StorageNetworkForRWX:
		return !endpoint
	case catalog.StorageNetwork:
		follows, err := catalog.BoolValue(m.Values[catalog.StorageNetworkForRWX].Text)
		return err == nil && follows && !endpoint || chose(m.Names.StorageInterface)
	}
	return false
}

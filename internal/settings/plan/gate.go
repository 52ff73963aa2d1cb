package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// AttachedVolumes are what keeps settings from being applied that wait for all
// volumes, or for those of some data engines: each that is not surely detached.
func AttachedVolumes(volumes []storage.Volume, engines ...string) []catalog.Blocker {
	blockers := make([]catalog.Blocker, 0, len(volumes))
	for i := range volumes {
		if v := &volumes[i]; v.Attached && (len(engines) == 0 || slices.Contains(engines, v.Engine)) {
			blockers = append(blockers, catalog.Blocker{
				Kind: catalog.BlockedByVolume, Name: v.Name, Nodes: v.Nodes, Workloads: v.Workloads, Noun: "volume",
				Message: "volume is attached: stop the workloads that use it, so that it is detached",
			})
		}
	}
	slices.SortFunc(blockers, func(a, b catalog.Blocker) int { return strings.Compare(a.Name, b.Name) })
	return blockers
}

// ofEngine are the attached volumes of a data engine.
func (m *maker) ofEngine(engine string) []catalog.Blocker {
	if _, known := m.byEngine[engine]; !known {
		m.byEngine[engine] = AttachedVolumes(m.Volumes, engine)
	}
	return m.byEngine[engine]
}

// gate is what keeps one setting from being brought to one component: the
// setting's own gate, the component's opting out, or a change that did not last.
// The gate of one setting is looked at for that setting alone.
func (m *maker) gate(s asking, want string, c catalog.Component) []catalog.Blocker {
	component := func(message string, args ...any) []catalog.Blocker {
		return []catalog.Blocker{{Kind: catalog.BlockedByComponent, Name: c.Name, Nodes: nodesOf(c), Message: describeComponent(c) + " " + fmt.Sprintf(message, args...)}}
	}
	removed := s.Trait == catalog.DataEngine // and does not come back
	node := m.Nodes[c.Node]
	held := m.isHeld(c, s.Trait, want)
	switch hold := m.Held[c.Name]; {
	case c.OptOut && ends(c): // by itself, annotation or not
		return m.itsVolumes(c)
	case c.OptOut:
		return component("opts out by %s: remove the annotation", storage.OptOutAnnotation)
	case c.Terminating && (!removed || hold.Wants[s.Trait] == want): // one that was removed is on its way
		return m.notReady(c)
	case held:
		m.lookAgainIn(hold.Until.Sub(m.Now))
		return []catalog.Blocker{{Kind: catalog.BlockedByOther, Name: c.Name, Nodes: nodesOf(c), Message: describeComponent(c) + " " + hold.Message}}
	case isPod(c) && !removed && c.Node != "" && (!node.Ready || node.StorageDown):
		return component("would not come back while the node is down: bring it back, or remove it")
	}
	if blockers := m.lacks(s, want, c); len(blockers) > 0 {
		return blockers
	}
	if c.Stopped && !removed {
		return nil
	}
	if closed := m.Rollout.Windows.Closed(m.Now); closed > 0 && !ends(c) && (c.Ready || !isPod(c)) {
		m.lookAgainIn(closed)
		return []catalog.Blocker{rollout.WindowBlocker(m.Now, closed)}
	}
	switch {
	case ends(c):
		return m.itsVolumes(c)
	case removed && len(m.ofEngine(c.Engine)) > 0:
		return m.ofEngine(c.Engine)
	case s.Gate == catalog.AllVolumesDetached && c.Kind != catalog.InstanceManager && len(m.attached) > 0:
		return m.attached
	case len(c.Uses) > 0:
		return m.inUse(s, c)
	}
	return nil
}

// isHeld tells whether a component was changed to this not long ago, and is not so.
func (m *maker) isHeld(c catalog.Component, t catalog.Trait, want string) bool {
	hold, held := m.Held[c.Name]
	return held && hold.Until.After(m.Now) && hold.Wants[t] == want && hold.Seen != c.Seen()
}

// inUseNoun marks a pod that blocks since something runs in it.
const inUseNoun = "pod"

// inUse tells what a pod is used by. Where a setting waits for volumes, it is
// the volumes that are told.
func (m *maker) inUse(s asking, c catalog.Component) []catalog.Blocker {
	if s.Gate == catalog.AllVolumesDetached && len(m.attached) > 0 {
		return m.attached
	}
	return runs(c)
}

// itsVolumes are those that a share manager ends with; itself, where nobody knows them.
func (m *maker) itsVolumes(c catalog.Component) []catalog.Blocker {
	var volumes []catalog.Blocker
	for _, name := range c.Uses {
		if i, attached := m.byVolume[name]; attached {
			volumes = append(volumes, m.attached[i])
		}
	}
	if len(volumes) == 0 {
		return runs(c)
	}
	return volumes
}

func runs(c catalog.Component) []catalog.Blocker {
	return []catalog.Blocker{{
		Kind: catalog.BlockedByComponent, Name: c.Name, Nodes: nodesOf(c), Noun: inUseNoun,
		Message: fmt.Sprintf("%s runs %s: %s", describeComponent(c), catalog.Count(len(c.Uses), "instance"), catalog.FirstOf(c.Uses)),
	}}
}

// notReady tells of a component that is on its way.
func (m *maker) notReady(c catalog.Component) []catalog.Blocker {
	if c.Client { // what its pods wait for is known better
		if more := slices.Concat(m.plan.Network.Blockers, m.plan.Network.Volumes.Blockers); len(more) > 0 {
			return more
		}
	}
	if c.Missing {
		if blockers := m.podLacks(c); len(blockers) > 0 {
			return blockers
		}
	}
	why := "is not Ready yet"
	switch {
	case c.Missing:
		why = "is yet to be created again by the storage system"
	case c.Terminating:
		why = "is still terminating"
	case c.Kind == catalog.DaemonSetComponent && c.Total == 0:
		why = "is wanted on no node: see its node selector and tolerations, and the labels and taints of nodes"
	case !isPod(c):
		why = fmt.Sprintf("has %d of %d pods updated and available", c.Updated, c.Total)
	}
	return []catalog.Blocker{{Kind: catalog.BlockedByComponent, Name: c.Name, Nodes: nodesOf(c), Message: describeComponent(c) + " " + why}}
}

func nodesOf(c catalog.Component) []string {
	if c.Node == "" {
		return nil
	}
	return []string{c.Node}
}

func describeComponent(c catalog.Component) string {
	text := c.Kind.Noun() + " " + c.Name
	if c.Node != "" {
		text += " on " + c.Node
	}
	return text
}

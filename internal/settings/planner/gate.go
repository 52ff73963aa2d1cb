package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// AttachedVolumes are the blockers of settings that wait for all volumes, or for those of some
// data engines. A volume of unknown state counts as attached.
func AttachedVolumes(volumes []rwx.Volume, engines ...string) []catalog.Blocker {
	blockers := make([]catalog.Blocker, 0, len(volumes))
	for i := range volumes {
		if v := &volumes[i]; v.Attached && (len(engines) == 0 || slices.Contains(engines, v.Engine)) {
			blockers = append(blockers, catalog.AttachedVolume(*v, "volume"))
		}
	}
	slices.SortFunc(blockers, func(a, b catalog.Blocker) int { return strings.Compare(a.Name, b.Name) })
	return blockers
}

// attachedOfEngine returns the attached volumes of a data engine.
func (m *maker) attachedOfEngine(engine string) []catalog.Blocker {
	if _, known := m.byEngine[engine]; !known {
		m.byEngine[engine] = AttachedVolumes(m.Rollout.Volumes, engine)
	}
	return m.byEngine[engine]
}

// gate returns what blocks one setting on one component: the setting's own gate, an opt-out,
// or a hold. Gates of other settings do not count. podBlockers are those of the component, for all settings.
func (m *maker) gate(s demand, want string, c catalog.Component, podBlockers func() []catalog.Blocker) []catalog.Blocker {
	component := func(message string, args ...any) []catalog.Blocker {
		return []catalog.Blocker{{Kind: catalog.BlockedByComponent, Name: c.Name, Nodes: nodesOf(c), Message: componentText(c) + " " + fmt.Sprintf(message, args...)}}
	}
	removed := s.Trait == catalog.DataEngine // the storage system does not recreate the pod
	node, exists := m.Nodes[c.Node]
	held := m.isHeld(c, s.Trait, want)
	switch hold := m.Held[c.Name]; {
	case c.OptOut && endsWithVolume(c): // whether or not the pod opts out
		return m.volumesOf(c)
	case c.OptOut:
		return component("opts out by %s: remove the annotation", rwx.OptOutAnnotation)
	case c.Terminating && (!removed || hold.Wants[s.Trait] == want): // a removed pod is terminating already
		return m.notReady(c)
	case held:
		m.recheckIn(hold.Until.Sub(m.Now))
		message := componentText(c) + " " + hold.Message
		if hold.Seen != "" {
			message += fmt.Sprintf("; its %s is %q, not %q", s.Trait, c.Built[s.Trait], want)
		}
		return []catalog.Blocker{{Kind: catalog.BlockedByOther, Name: c.Name, Nodes: nodesOf(c), Message: message}}
	case isPod(c) && !removed && c.Node != "" && !exists:
		return component("is on a node that was deleted: wait until the pod is removed")
	case isPod(c) && !removed && c.Node != "" && (!node.Ready || node.StorageDown):
		return component("cannot restart while its node is down: start the node; only if the machine is off for good, delete its Node object")
	}
	if blockers := m.restartBlockers(s, want, c, podBlockers); len(blockers) > 0 {
		return blockers
	}
	if c.Stopped && !removed {
		return nil
	}
	switch {
	case endsWithVolume(c):
		return m.volumesOf(c)
	case removed && len(m.attachedOfEngine(c.Engine)) > 0:
		return m.attachedOfEngine(c.Engine)
	case s.Gate == catalog.AllVolumesDetached && c.Kind != catalog.InstanceManager && len(m.attached) > 0:
		return m.attached
	case len(c.Uses) > 0:
		return m.inUse(s, c)
	}
	return nil
}

// closedWindow returns the maintenance window that a component waits for, beside its gate. What does not run restarts at any
// time.
func (m *maker) closedWindow(s demand, c catalog.Component) []catalog.Blocker {
	if endsWithVolume(c) || isPod(c) && !c.Ready || c.Stopped && s.Trait != catalog.DataEngine {
		return nil
	}
	if m.windowOpensIn == 0 {
		return nil
	}
	m.recheckIn(m.windowOpensIn)
	return m.sharedBlocker(rollout.WindowBlocker(m.Now, m.windowOpensIn))
}

// isHeld reports whether a component was changed to the value recently and still differs.
func (m *maker) isHeld(c catalog.Component, t catalog.Trait, want string) bool {
	hold, held := m.Held[c.Name]
	return held && hold.Until.After(m.Now) && hold.Wants[t] == want && hold.Seen != c.Seen()
}

// inUseNoun marks blockers that are pods in use.
const inUseNoun = "pod"

// inUse returns the blockers of a pod in use: the attached volumes, if the setting waits for volumes.
func (m *maker) inUse(s demand, c catalog.Component) []catalog.Blocker {
	if s.Gate == catalog.AllVolumesDetached && len(m.attached) > 0 {
		return m.attached
	}
	return inUseBlocker(c)
}

// volumesOf returns the volumes of a share manager; the pod itself, if its volumes are unknown.
func (m *maker) volumesOf(c catalog.Component) []catalog.Blocker {
	var volumes []catalog.Blocker
	for _, name := range c.Uses {
		if i, attached := m.byVolume[name]; attached {
			volumes = append(volumes, m.attached[i])
		}
	}
	if len(volumes) == 0 {
		return inUseBlocker(c)
	}
	return volumes
}

func inUseBlocker(c catalog.Component) []catalog.Blocker {
	return []catalog.Blocker{{
		Kind: catalog.BlockedByComponent, Name: c.Name, Nodes: nodesOf(c), Noun: inUseNoun,
		Message: fmt.Sprintf("%s runs %s: %s", componentText(c), catalog.Count(len(c.Uses), "instance"), catalog.FirstOf(c.Uses)),
	}}
}

// notReady returns the blockers of a component that is not Ready yet.
func (m *maker) notReady(c catalog.Component) []catalog.Blocker {
	if c.Client { // the roll-out knows more exactly what its pods wait for
		if more := slices.Concat(m.plan.Network.Blockers, m.plan.Network.Volumes.Blockers); len(more) > 0 {
			return more
		}
	}
	if c.Missing {
		if blockers := m.podBlockers(c); len(blockers) > 0 {
			return blockers
		}
	}
	why := "is not Ready yet"
	switch {
	case c.Missing:
		// longhorn-manager v1.10.0, controller/utils.go: 1, 2, 4 … 120 s.
		why = "has not been recreated by the storage system; Longhorn from 1.10 on waits up to two minutes when restarts follow closely"
	case c.Terminating:
		why = "is still terminating"
	case c.Unaddressed:
		why = fmt.Sprintf("has no address on %s: Multus reports none; the next one restarts once it has: look at the network's ipam, and at Multus on the node, or set the value back", c.Built[catalog.StorageAttachment])
	case c.Kind == catalog.DaemonSetComponent && c.Total == 0:
		why = "matches no node: check its node selector and tolerations, and the labels and taints of nodes"
	case !isPod(c):
		why = fmt.Sprintf("has %d of %d pods updated and available", c.Updated, c.Total)
	}
	return []catalog.Blocker{{Kind: catalog.BlockedByComponent, Name: c.Name, Nodes: nodesOf(c), Message: componentText(c) + " " + why}}
}

func nodesOf(c catalog.Component) []string {
	if c.Node == "" {
		return nil
	}
	return []string{c.Node}
}

func componentText(c catalog.Component) string {
	text := c.Kind.Noun() + " " + c.Name
	if c.Node != "" {
		text += " on " + c.Node
	}
	return text
}

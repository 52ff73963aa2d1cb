package planner

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// restartBlockers returns what would prevent a component from starting again. A class, network or
// label may have been deleted since the value was accepted. A pod is recreated with all values,
// a template gets only the setting's own field, and a removed pod does not start again.
func (m *maker) restartBlockers(s demand, want string, c catalog.Component, podBlockers func() []catalog.Blocker) []catalog.Blocker {
	switch {
	case !isPod(c):
		return m.templateBlockers(s, want, c)
	case s.Trait == catalog.DataEngine:
		return nil
	}
	return podBlockers()
}

func (m *maker) podBlockers(c catalog.Component) []catalog.Blocker {
	for _, class := range []string{m.valueAfterRestart(c, catalog.PriorityClassName), strings.TrimSpace(m.SystemValues[catalog.PriorityClass])} {
		// The storage system uses its own value, valid or not.
		if blockers := m.missingClass(class); blockers != nil {
			return blockers
		}
	}
	if blockers := m.missingNetwork(m.valueAfterRestart(c, catalog.StorageAttachment)); blockers != nil {
		return blockers
	}
	node, known := m.Nodes[c.Node]
	if !known || !bound(c) {
		return nil
	}
	if refusal := refusalOf(node, m.requestOf(c)); refusal != nil {
		return []catalog.Blocker{{Kind: catalog.BlockedByNode, Name: c.Node, Nodes: nodesOf(c), Message: componentText(c) + " cannot restart: " + refusal.why}}
	}
	return nil
}

// bound reports whether the storage system creates the pod with a node name.
func bound(c catalog.Component) bool {
	return c.Kind == catalog.InstanceManager || c.Kind == catalog.BackingImageManager
}

// isExcluded reports whether the node selector excludes the node of an idle bound pod. Such a pod
// could not restart on the node: it keeps its traits, and no setting waits for it.
func (m *maker) isExcluded(c catalog.Component) bool {
	node, known := m.Nodes[c.Node]
	if !known || !bound(c) || len(c.Uses) > 0 {
		return false
	}
	refusal := refusalOf(node, request{selector: m.valueAfterRestart(c, catalog.NodeSelector)})
	if refusal == nil || !refusal.excluded {
		return false
	}
	m.excluded[c.Node] = true
	return true
}

// requestOf returns what a component's pod requires of a node when it is recreated.
func (m *maker) requestOf(c catalog.Component) request {
	r := request{
		selector: m.valueAfterRestart(c, catalog.NodeSelector), bound: bound(c),
		ignoresCordon: c.Kind == catalog.DaemonSetComponent || c.Kind == catalog.BackingImageManager,
	}
	r.tolerations = tolerationsOf(c, m.valueAfterRestart(c, catalog.Tolerations))
	if c.Kind == catalog.InstanceManager {
		r.milliCPU, r.hugepagesMiB = m.milliCPUOf(c), m.hugepagesOf(c)
	}
	return r
}

// tolerationsOf returns all tolerations of a pod, with those of the setting.
func tolerationsOf(c catalog.Component, trait string) []corev1.Toleration {
	set, err := catalog.ParseTolerations(trait)
	if err != nil {
		set = nil
	}
	others := c.OtherTolerations
	if c.Kind == catalog.DaemonSetComponent {
		others = slices.Concat(others, daemonSetTolerations)
	}
	return slices.Concat(others, set)
}

// milliCPUOf returns the CPU request of an instance manager after a restart, with its new number of cores.
func (m *maker) milliCPUOf(c catalog.Component) int64 {
	cores := m.valueAfterRestart(c, catalog.CPUCores)
	built := map[catalog.Trait]string{}
	maps.Copy(built, c.Built)
	built[catalog.CPUCores] = cores
	c.Built = built
	q, ok := catalog.ParseQuantity(m.valueAfterRestart(c, catalog.CPURequest))
	if !ok {
		return 0
	}
	return catalog.CoresMilliCPU(q.MilliValue(), cores)
}

// hugepagesOf returns the huge pages that a v2 instance manager requests after a restart, in MiB.
func (m *maker) hugepagesOf(c catalog.Component) int64 {
	if c.Engine != catalog.EngineV2 || m.valueAfterRestart(c, catalog.Hugepages) == "false" {
		return 0
	}
	size, err := strconv.ParseInt(m.valueAfterRestart(c, catalog.MemorySize), 10, 64)
	if err != nil {
		return 0
	}
	return size
}

// valueAfterRestart returns a trait of a recreated pod: by the settings, or as the pod has it now.
func (m *maker) valueAfterRestart(c catalog.Component, t catalog.Trait) string {
	built, exists := c.Built[t]
	if exists || c.Missing {
		for _, s := range m.demands {
			if s.Trait != t {
				continue
			}
			if want, ok := s.want(c, m.Nodes); ok {
				return want
			}
		}
	}
	return built
}

// templateBlockers returns what would prevent all pods of a template from starting.
func (m *maker) templateBlockers(s demand, want string, c catalog.Component) []catalog.Blocker {
	class := c.Built[catalog.PriorityClassName]
	if s.Trait == catalog.PriorityClassName {
		class = want
	}
	if blockers := m.missingClass(class); blockers != nil {
		return blockers
	}
	if s.Trait != catalog.NodeSelector && s.Trait != catalog.Tolerations || len(m.Nodes) == 0 {
		return nil
	}
	r := request{
		selector: m.valueAfterUpdate(c, catalog.NodeSelector), tolerations: tolerationsOf(c, m.valueAfterUpdate(c, catalog.Tolerations)),
		ignoresCordon: c.Kind == catalog.DaemonSetComponent,
	}
	why := fmt.Sprintf("no node has the labels %q: label nodes, or change %s", r.selector, catalog.SystemManagedNodeSelector)
	for _, name := range slices.Sorted(maps.Keys(m.Nodes)) {
		refusal := refusalOf(m.Nodes[name], r)
		if refusal == nil {
			return nil
		}
		if !refusal.excluded {
			why = fmt.Sprintf("no node accepts pods of %s (on %s: %s)", c.Name, name, refusal.why)
		}
	}
	return m.sharedBlocker(catalog.Blocker{Kind: catalog.BlockedByNode, Name: want, Message: why})
}

// valueAfterUpdate returns a trait of a template after the update. Selector and tolerations have
// the same gate, and are written together unless one is held.
func (m *maker) valueAfterUpdate(c catalog.Component, t catalog.Trait) string {
	for _, s := range m.demands {
		if s.Trait != t {
			continue
		}
		if want, ok := s.want(c, m.Nodes); ok && !s.invalid && !m.isHeld(c, t, want) {
			return want
		}
	}
	return c.Built[t]
}

func (m *maker) missingClass(name string) []catalog.Blocker {
	if name == "" || m.Classes == nil || m.Classes[name] {
		return nil
	}
	return m.sharedBlocker(catalog.Blocker{Kind: catalog.BlockedByClass, Name: name, Message: fmt.Sprintf(
		"there is no PriorityClass %s, and pods of it are refused: create it, or change %s", name, catalog.PriorityClass)})
}

// missingNetwork checks the network of a StorageAttachment trait.
func (m *maker) missingNetwork(attachment string) []catalog.Blocker {
	a, err := multus.ParseAttachment(attachment)
	if err != nil || a.IsZero() {
		return nil
	}
	if m.Rollout.Unlisted != "" {
		m.recheckIn(rollout.MissingNetworkRetry)
		return m.sharedBlocker(catalog.Blocker{Kind: catalog.BlockedByNetwork, Name: a.Network.String(), Message: fmt.Sprintf(
			"NetworkAttachmentDefinitions cannot be listed, so it is not known whether %s exists: %s", a.Network, m.Rollout.Unlisted)})
	}
	if m.Rollout.Networks == nil || m.Rollout.Networks[a.Network] {
		return nil
	}
	m.recheckIn(rollout.MissingNetworkRetry) // without networks, none is watched
	return m.sharedBlocker(catalog.NoNetwork(a.Network, m.Rollout.Networks))
}

// sharedBlocker returns one slice for all components with the same blocker.
func (m *maker) sharedBlocker(b catalog.Blocker) []catalog.Blocker {
	key := string(b.Kind) + " " + b.Name
	if m.absent[key] == nil {
		m.absent[key] = []catalog.Blocker{b}
	}
	return m.absent[key]
}

func (m *maker) recheckIn(d time.Duration) {
	if m.plan.After == 0 || d < m.plan.After {
		m.plan.After = d
	}
}

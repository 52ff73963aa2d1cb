package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// Existing is what there is of what pods can't come back without. A nil map is
// not known, and keeps nothing back.
type Existing struct {
	// Classes are the priority classes. The API server refuses pods of another.
	Classes map[string]bool
	// Networks of Multus. A pod on another never starts.
	Networks map[storage.Network]bool
	// NetworksUnlisted is why networks could not be listed; "" where they were.
	NetworksUnlisted string
}

// comeback is what keeps one pod from coming back, found out once for all settings.
type comeback struct {
	looked   bool
	blockers []catalog.Blocker
}

// lacks is what keeps a component from coming back once it is restarted. What
// was there when a value was accepted may be gone when it is applied, days later.
//
// A pod is created again with all values in force, whichever it is restarted for; of
// a template only the setting's own field is written. What a data engine that is
// switched off lacks does not matter.
func (m *maker) lacks(s asking, want string, c catalog.Component) []catalog.Blocker {
	switch {
	case !isPod(c):
		return m.templateLacks(s, want, c)
	case s.Trait == catalog.DataEngine:
		return nil
	case !m.comeback.looked:
		m.comeback = comeback{true, m.podLacks(c)}
	}
	return m.comeback.blockers
}

func (m *maker) podLacks(c catalog.Component) []catalog.Blocker {
	for _, class := range []string{m.newly(c, catalog.PriorityClassName), strings.TrimSpace(m.SystemValues[catalog.PriorityClass])} {
		// The storage system asks for its own, well formed or not.
		if blockers := m.noClass(class); blockers != nil {
			return blockers
		}
	}
	if blockers := m.noNetwork(m.newly(c, catalog.StorageAttachment)); blockers != nil {
		return blockers
	}
	node, known := m.Nodes[c.Node]
	if !known || !bound(c) {
		return nil
	}
	if refusal := refusalOf(node, m.requestOf(c)); refusal != nil {
		return []catalog.Blocker{{Kind: catalog.BlockedByComponent, Name: c.Name, Nodes: nodesOf(c), Message: describeComponent(c) + " would not come back: " + refusal.why}}
	}
	return nil
}

// bound tells whether the storage system binds the pod to its node itself.
func bound(c catalog.Component) bool {
	return c.Kind == catalog.InstanceManager || c.Kind == catalog.BackingImageManager
}

// isLeftOut tells whether the node selector in force does not want the node of a
// bound pod that runs nothing. Such a pod could not come back there: it stays as it
// is, and no setting waits for it.
func (m *maker) isLeftOut(c catalog.Component) bool {
	node, known := m.Nodes[c.Node]
	if !known || !bound(c) || len(c.Uses) > 0 {
		return false
	}
	refusal := refusalOf(node, request{selector: m.newly(c, catalog.NodeSelector)})
	if refusal == nil || !refusal.leftOut {
		return false
	}
	m.leftOut[c.Node] = true
	return true
}

// requestOf is what a component's pod asks of a node when it is created again.
func (m *maker) requestOf(c catalog.Component) request {
	r := request{
		selector: m.newly(c, catalog.NodeSelector), bound: bound(c),
		ignoresCordon: c.Kind == catalog.DaemonSetComponent || c.Kind == catalog.BackingImageManager,
	}
	r.tolerations = tolerationsOf(c, m.newly(c, catalog.Tolerations))
	if c.Kind == catalog.InstanceManager {
		r.milliCPU, r.hugepagesMiB = m.milliCPUOf(c), m.hugepagesOf(c)
	}
	return r
}

// tolerationsOf are all that a pod has, with those that the setting gives.
func tolerationsOf(c catalog.Component, trait string) []corev1.Toleration {
	given, err := catalog.ParseTolerations(trait)
	if err != nil {
		given = nil
	}
	others := c.OtherTolerations
	if c.Kind == catalog.DaemonSetComponent {
		others = slices.Concat(others, ofDaemonSets)
	}
	return slices.Concat(others, given)
}

// milliCPUOf is what an instance manager asks for, with the number of cores that it is created again with.
func (m *maker) milliCPUOf(c catalog.Component) int64 {
	cores := m.newly(c, catalog.CPUCores)
	built := map[catalog.Trait]string{}
	maps.Copy(built, c.Built)
	built[catalog.CPUCores] = cores
	c.Built = built
	q, ok := catalog.ParseQuantity(m.newly(c, catalog.CPURequest))
	if !ok {
		return 0
	}
	return catalog.CoresMilliCPU(q.MilliValue(), cores)
}

// hugepagesOf is what an instance manager of the v2 data engine asks for, in MiB.
func (m *maker) hugepagesOf(c catalog.Component) int64 {
	if c.Engine != catalog.EngineV2 || m.newly(c, catalog.Hugepages) == "false" {
		return 0
	}
	size, err := strconv.ParseInt(m.newly(c, catalog.MemorySize), 10, 64)
	if err != nil {
		return 0
	}
	return size
}

// newly is what a pod is created with again: what a setting in force asks for, or
// what it is built with now.
func (m *maker) newly(c catalog.Component, t catalog.Trait) string {
	built, exists := c.Built[t]
	if exists || c.Missing {
		for _, s := range m.asking {
			if s.Trait != t {
				continue
			}
			if want, ok := s.asks(c, m.Nodes); ok {
				return want
			}
		}
	}
	return built
}

// templateLacks: a template whose pods are refused, or that no node takes, loses
// those that it has.
func (m *maker) templateLacks(s asking, want string, c catalog.Component) []catalog.Blocker {
	class := c.Built[catalog.PriorityClassName]
	if s.Trait == catalog.PriorityClassName {
		class = want
	}
	if blockers := m.noClass(class); blockers != nil {
		return blockers
	}
	if s.Trait != catalog.NodeSelector && s.Trait != catalog.Tolerations || len(m.Nodes) == 0 {
		return nil
	}
	r := request{
		selector: m.written(c, catalog.NodeSelector), tolerations: tolerationsOf(c, m.written(c, catalog.Tolerations)),
		ignoresCordon: c.Kind == catalog.DaemonSetComponent,
	}
	why := fmt.Sprintf("no node has the labels %q: label nodes, or change %s", r.selector, catalog.SystemManagedNodeSelector)
	for _, name := range slices.Sorted(maps.Keys(m.Nodes)) {
		refusal := refusalOf(m.Nodes[name], r)
		if refusal == nil {
			return nil
		}
		if !refusal.leftOut {
			why = fmt.Sprintf("no node takes pods of %s (on %s: %s)", c.Name, name, refusal.why)
		}
	}
	return m.gone(catalog.Blocker{Kind: catalog.BlockedByNode, Name: want, Message: why})
}

// written is what a template has once what is open is written: selector and
// tolerations have one gate, and are written together unless one of them is held.
func (m *maker) written(c catalog.Component, t catalog.Trait) string {
	for _, s := range m.asking {
		if s.Trait != t {
			continue
		}
		if want, ok := s.asks(c, m.Nodes); ok && !s.unclear && !m.isHeld(c, t, want) {
			return want
		}
	}
	return c.Built[t]
}

func (m *maker) noClass(name string) []catalog.Blocker {
	if name == "" || m.Existing.Classes == nil || m.Existing.Classes[name] {
		return nil
	}
	return m.gone(catalog.Blocker{Kind: catalog.BlockedByClass, Name: name, Message: fmt.Sprintf(
		"there is no PriorityClass %s, and pods of it are refused: create it, or change %s", name, catalog.PriorityClass)})
}

// noNetwork of an attachment, as the trait has it.
func (m *maker) noNetwork(attachment string) []catalog.Blocker {
	a, err := storage.ParseAttachment(attachment)
	if err != nil || a.IsZero() {
		return nil
	}
	if m.Existing.NetworksUnlisted != "" {
		m.lookAgainIn(rollout.MissingNetworkRetry)
		return m.gone(catalog.Blocker{Kind: catalog.BlockedByNetwork, Name: a.Network.String(), Message: fmt.Sprintf(
			"NetworkAttachmentDefinitions cannot be listed, so it is not known whether %s exists: %s", a.Network, m.Existing.NetworksUnlisted)})
	}
	if m.Existing.Networks == nil {
		m.plan.AsksForNetworks = true
		return nil
	}
	if m.Existing.Networks[a.Network] {
		return nil
	}
	m.lookAgainIn(rollout.MissingNetworkRetry) // its creation is no event
	return m.gone(catalog.Blocker{Kind: catalog.BlockedByNetwork, Name: a.Network.String(), Message: fmt.Sprintf(
		"there is no NetworkAttachmentDefinition %s, and pods on it do not start: create it, or change %s", a.Network, catalog.StorageNetwork)})
}

// gone is one blocker for all components that lack the same.
func (m *maker) gone(b catalog.Blocker) []catalog.Blocker {
	key := string(b.Kind) + " " + b.Name
	if m.absent[key] == nil {
		m.absent[key] = []catalog.Blocker{b}
	}
	return m.absent[key]
}

func (m *maker) lookAgainIn(d time.Duration) {
	if m.plan.After == 0 || d < m.plan.After {
		m.plan.After = d
	}
}

package settings

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-io/fairlead/storage"
)

// Existing is what there is of what pods can't come back without. A nil map is
// not known, and keeps nothing back.
type Existing struct {
	// Classes are the priority classes. The API server refuses pods of another.
	Classes map[string]bool
	// Networks of Multus. A pod on another never starts.
	Networks map[storage.Network]bool
}

// NetworksThere is Existing.Networks of a list.
func NetworksThere(networks []storage.Network) map[storage.Network]bool {
	there := make(map[storage.Network]bool, len(networks))
	for _, n := range networks {
		there[n] = true
	}
	return there
}

// comeback is what keeps one pod from coming back, found out once for all settings.
type comeback struct {
	looked   bool
	blockers []Blocker
}

// lacks is what keeps a component from coming back once it is restarted. What
// was there when a value was accepted may be gone when it is applied, days later.
//
// A pod is made anew with all values in force, whichever it is restarted for; of
// a template only the setting's own field is written. What a data engine that is
// switched off lacks is no matter.
func (m *maker) lacks(s forced, want string, c Component) []Blocker {
	switch {
	case !isPod(c):
		return m.templateLacks(s, want, c)
	case s.Trait == DataEngine:
		return nil
	case !m.comeback.looked:
		m.comeback = comeback{true, m.podLacks(c)}
	}
	return m.comeback.blockers
}

func (m *maker) podLacks(c Component) []Blocker {
	for _, class := range []string{m.newly(c, PriorityClassName).Text, strings.TrimSpace(m.SystemValues[PriorityClass])} {
		// The storage system's own class is refused before a webhook sees the pod.
		if blockers := m.noClass(class); blockers != nil {
			return blockers
		}
	}
	if blockers := m.noNetwork(m.newly(c, StorageAttachment).Text); blockers != nil {
		return blockers
	}
	return m.nodeLacks(c)
}

// nodeLacks is what the pod's own node is without. The storage system binds
// instance managers and backing image managers to their nodes itself, and the
// kubelet refuses what does not fit; the others find another node.
// Source: k8s.io/kubernetes pkg/kubelet/lifecycle/predicate.go.
func (m *maker) nodeLacks(c Component) []Blocker {
	node, known := m.Nodes[c.Node]
	if !known || c.Kind != InstanceManager && c.Kind != BackingImageManager {
		return nil
	}
	why := ""
	switch text := m.newly(c, NodeSelector).Text; {
	case !node.has(text):
		why = fmt.Sprintf("its node lacks %q: label it", text)
	default:
		if asks, by := m.hugepagesOf(c); asks > node.AllocatableHugepagesMiB {
			why = fmt.Sprintf("it asks for %d MiB of huge pages and the node has %d: give it more", asks, node.AllocatableHugepagesMiB)
			if by != "" && !ReadOnly(string(by)) {
				why += fmt.Sprintf(", or change %s", by)
			}
		}
	}
	if why == "" {
		return nil
	}
	return []Blocker{{Kind: BlockedByComponent, Name: c.Name, Nodes: nodesOf(c), Message: describeComponent(c) + " would not come back: " + why}}
}

// has tells whether the node has all labels of a NodeSelectorTrait.
func (n Node) has(trait string) bool {
	selector, err := ParseNodeSelector(trait)
	if err != nil {
		return true // nothing is asked by what can't be read
	}
	for key, value := range selector {
		if had, ok := n.Labels[key]; !ok || had != value {
			return false
		}
	}
	return true
}

// hugepagesOf is what an instance manager of the v2 data engine asks for, in MiB,
// and the setting that says so, if one does.
// What other pods of the node take is not counted, as Longhorn does not:
// longhorn-manager nodeHasEnoughHugepageTotalCapacity.
func (m *maker) hugepagesOf(c Component) (int64, Name) {
	if c.Kind != InstanceManager || c.Engine != EngineV2 || m.newly(c, Hugepages).Text == "false" {
		return 0, ""
	}
	memory := m.newly(c, MemorySize)
	size, err := strconv.ParseInt(memory.Text, 10, 64)
	if err != nil {
		return 0, ""
	}
	return size, memory.Setting
}

// newly is what a pod is made anew with: what a setting in force asks for, or
// what it is built with now, by no setting. Of what nobody heeds, and of what is not
// well formed, the pod comes back with what the storage system says itself.
func (m *maker) newly(c Component, t Trait) Want {
	built, exists := c.Built[t]
	if !exists && !c.Missing {
		return Want{}
	}
	for _, s := range m.forced {
		if s.Trait != t {
			continue
		}
		want, ok := s.asks(c, m.Nodes)
		if m.tracks[m.index[s.Name]].unheeded != nil {
			want, ok = m.systemAsks(s.Definition, c)
		}
		if ok {
			return Want{s.Name, want}
		}
	}
	for i := range m.tracks {
		if d := m.tracks[i].Definition; d.Trait == t && m.tracks[i].invalid != nil {
			if want, ok := m.systemAsks(d, c); ok {
				return Want{d.Name, want}
			}
		}
	}
	return Want{Text: built}
}

// systemAsks is what the storage system's own value of a setting asks for.
func (m *maker) systemAsks(d Definition, c Component) (string, bool) {
	theirs, has := m.SystemValues[d.Name]
	normal, err := d.Normalize(theirs)
	if !has || err != nil {
		return "", false
	}
	return d.Wants(normal, c, m.Nodes)
}

// templateLacks: a template whose pods are refused, or that no node takes, loses
// those that it has.
func (m *maker) templateLacks(s forced, want string, c Component) []Blocker {
	class := c.Built[PriorityClassName]
	if s.Trait == PriorityClassName {
		class = want
	}
	if blockers := m.noClass(class); blockers != nil {
		return blockers
	}
	if s.Trait != NodeSelector || len(m.Nodes) == 0 {
		return nil
	}
	for _, node := range m.Nodes {
		if node.has(want) {
			return nil
		}
	}
	return m.gone(Blocker{Kind: BlockedByNode, Name: want, Message: fmt.Sprintf(
		"no node has the labels %q, so no pod of a DaemonSet or Deployment would start: label nodes, or change %s", want, SystemManagedNodeSelector)})
}

func (m *maker) noClass(name string) []Blocker {
	if name == "" || m.Existing.Classes == nil || m.Existing.Classes[name] {
		return nil
	}
	return m.gone(Blocker{Kind: BlockedByClass, Name: name, Message: fmt.Sprintf(
		"there is no PriorityClass %s, and pods of it are refused: create it, or change %s", name, PriorityClass)})
}

// noNetwork of an attachment, as the trait has it.
func (m *maker) noNetwork(attachment string) []Blocker {
	a, err := storage.ParseAttachment(attachment)
	if err != nil || a.IsZero() {
		return nil
	}
	if m.Existing.Networks == nil {
		m.plan.AsksForNetworks = true
		return nil
	}
	if m.Existing.Networks[a.Network] {
		return nil
	}
	m.lookAgainIn(missingNetworkRetry) // its creation is no event
	return m.gone(Blocker{Kind: BlockedByNetwork, Name: a.Network.String(), Message: fmt.Sprintf(
		"there is no NetworkAttachmentDefinition %s, and pods on it do not start: create it, or change %s", a.Network, StorageNetwork)})
}

// gone is one blocker for all components that lack the same.
func (m *maker) gone(b Blocker) []Blocker {
	key := string(b.Kind) + " " + b.Name
	if m.absent[key] == nil {
		m.absent[key] = []Blocker{b}
	}
	return m.absent[key]
}

func (m *maker) lookAgainIn(d time.Duration) {
	if m.plan.After == 0 || d < m.plan.After {
		m.plan.After = d
	}
}

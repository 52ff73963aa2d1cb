package settings

import (
	"maps"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/storage"
)

// What the pods of the model's cluster can't come back without: a node that is
// up, its labels and huge pages, a priority class, a network. All of it comes
// and goes. What is made of a value is told from the facts, not from the code.

// zone is the node selector that nodes match, but for those whose label is gone.
const zone = "zone:a"

// nodeAtRest is a node as it is when nobody is at it.
func nodeAtRest(n *Node) {
	n.Ready, n.Cordoned, n.StorageDown = true, false, false
	n.Labels, n.AllocatableHugepagesMiB = map[string]string{"zone": "a"}, 8192
}

// mischief on one node.
func mischief(do string) func(*Node) {
	return func(n *Node) {
		switch do {
		case "kubelet":
			n.Ready = !n.Ready
		case "cordon":
			n.Cordoned = !n.Cordoned
		case "storage system":
			n.StorageDown = !n.StorageDown
		case "label":
			if n.Labels != nil {
				n.Labels = nil
			} else {
				n.Labels = map[string]string{"zone": "a"}
			}
		case "huge pages":
			n.AllocatableHugepagesMiB = 8192 + 1024 - n.AllocatableHugepagesMiB
		}
	}
}

// existing are the class and the network of the model that come and go, and those that stay.
func (m *fleetModel) existing() Existing {
	return Existing{
		Classes:  map[string]bool{"installed": true, "critical": !m.classGone},
		Networks: NetworksThere(m.networks()),
	}
}

func (m *fleetModel) networks() []storage.Network {
	networks := []storage.Network{{Namespace: "kube-system", Name: "a"}}
	if !m.networkGone {
		networks = append(networks, storage.Network{Namespace: "kube-system", Name: "b"})
	}
	return networks
}

// newly is what a pod is made with.
func (m *fleetModel) newly(c Component, mutator bool) map[Trait]string {
	built := m.installed(c)
	if !mutator {
		return built
	}
	for trait, want := range Wanted(m.values(), m.system, m.applied, c, m.nodes) {
		if _, exists := built[trait]; exists && m.heeds(want.Setting) && !BuiltBySystem(trait) {
			built[trait] = want.Text
		}
	}
	return built
}

// isRefused: the API server makes no pod of a class that is gone, and it is the
// storage system's that it is asked for, before a webhook changes it.
func (m *fleetModel) isRefused(c Component, built map[Trait]string) bool {
	classes := m.existing().Classes
	classes[""] = true
	return !classes[m.system[PriorityClass]] || !classes[built[PriorityClassName]]
}

// fits: the kubelet takes the pod.
func (m *fleetModel) fits(c Component, built map[Trait]string) bool {
	if c.Kind == ShareManager {
		return true // it is on whichever node it fits
	}
	node := m.nodes[c.Node]
	labelled := built[NodeSelector] == "" || built[NodeSelector] == zone && node.Labels["zone"] == "a"
	huge := c.Engine == EngineV2 && node.AllocatableHugepagesMiB < 2048 // the least of planValues
	return labelled && !huge
}

// connects: Multus knows its network.
func (m *fleetModel) connects(built map[Trait]string) bool {
	return !m.networkGone || built[StorageAttachment] != "kube-system/b@lhnet1"
}

// isMade: the storage system makes the pod that is missing.
func (m *fleetModel) isMade(c Component) bool {
	node := m.nodes[c.Node]
	return node.Ready && !node.StorageDown && !(c.Kind == InstanceManager && node.Cordoned)
}

// isUp: the pod is waited for.
func (m *fleetModel) isUp(c Component) bool {
	node := m.nodes[c.Node]
	if !isPod(c) {
		return true
	}
	return node.Ready && !node.StorageDown && !(c.Missing && (node.Cordoned || !m.fits(c, m.newly(c, true))))
}

// mustComeBack: a pod that is deleted for a setting comes back if nothing else happens.
func (m *fleetModel) mustComeBack(t *rapid.T, w Work, c Component) {
	if w.Action == RemoveComponent {
		return
	}
	if !m.isMade(c) {
		t.Fatalf("invariant 4: %s: nobody makes it anew: %+v", textOfWork(w), m.nodes[c.Node])
	}
	switch built := m.newly(c, true); {
	case m.isRefused(c, built):
		t.Fatalf("invariant 4: %s: its class is gone: %v", textOfWork(w), built)
	case !m.fits(c, built):
		t.Fatalf("invariant 4: %s: %+v does not take it: %v", textOfWork(w), m.nodes[c.Node], built)
	case !m.connects(built):
		t.Fatalf("invariant 4: %s: its network is gone: %v", textOfWork(w), built)
	}
}

// mustRoll: pods of a template start somewhere.
func (m *fleetModel) mustRoll(t *rapid.T, w Work, c Component) {
	built := maps.Clone(c.Built)
	for trait, want := range w.Wants {
		built[trait] = want.Text
	}
	if m.classGone && built[PriorityClassName] == "critical" {
		t.Fatalf("invariant 4: %s: its class is gone", textOfWork(w))
	}
	if _, changes := w.Wants[NodeSelector]; !changes || built[NodeSelector] == "" {
		return
	}
	for _, n := range m.nodes {
		if built[NodeSelector] == zone && n.Labels["zone"] == "a" {
			return
		}
	}
	t.Fatalf("invariant 4: %s: no node takes its pods: %v", textOfWork(w), built)
}

// allIsThere again.
func (m *fleetModel) allIsThere() {
	m.classGone, m.networkGone = false, false
	for _, name := range m.nodes.names() {
		m.changeNode(name, nodeAtRest)
	}
}

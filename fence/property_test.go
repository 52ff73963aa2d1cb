package fence

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

func TestFenceInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(3, rapid.IntRange(0, 5).Draw(t, "shared address") == 5)
		w.automatic = rapid.IntRange(0, 3).Draw(t, "automatic") == 3
		tampers := rapid.IntRange(0, 2).Draw(t, "people tamper") == 2
		switches := rapid.IntRange(0, 4).Draw(t, "people switch off") == 4
		overrides := rapid.IntRange(0, 2).Draw(t, "people override") == 2
		node := func() string { return rapid.SampledFrom(w.nodeNames()).Draw(t, "node") }
		anyName := func() string {
			if names := w.everyName(); len(names) > 0 {
				return rapid.SampledFrom(names).Draw(t, "name")
			}
			return "node-1"
		}
		volume := func() Volume { return rapid.SampledFrom(worldVolumes).Draw(t, "volume") }
		fenceName := func() string {
			if len(w.fences) == 0 {
				return ""
			}
			return rapid.SampledFrom(sortedKeys(w.fences)).Draw(t, "fence")
		}
		for _, n := range w.nodeNames() {
			w.settleDown(t, n)
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				w.check(t)
				w.step++
				if w.views = append(w.views, w.view()); len(w.views) > 8 {
					w.views = w.views[1:]
				}
			},
			"pass time": func(t *rapid.T) {
				w.now = w.now.Add(rapid.SampledFrom([]time.Duration{time.Second, 7 * time.Second, 30 * time.Second, 3 * time.Minute, 7 * time.Minute}).Draw(t, "passes"))
			},
			// Machines.
			"partition":         func(*rapid.T) { w.machineOf(node()).reaches = false },
			"partition heals":   func(*rapid.T) { m := w.machineOf(node()); m.reaches = true; w.heartbeat(m) },
			"power fails":       func(*rapid.T) { m := w.machineOf(node()); m.on, m.mounts = false, map[string]bool{} },
			"reboot":            func(*rapid.T) { w.reboot(w.machineOf(node())) },
			"old machine stops": func(*rapid.T) { w.stopScrap() },
			"address is given to another": func(t *rapid.T) {
				from, to := w.machineOf(node()), w.machineOf(node())
				if from == to || from.on {
					return
				}
				// The one that is off gets another when it comes back.
				w.reboot(to)
				to.address, to.since = from.address, w.step
				from.address, from.since = w.newAddresses(), w.step
			},
			"CSIAddonsNode": func(*rapid.T) { n := node(); w.silent[n] = !w.silent[n] },
			// Kubernetes.
			"kubelet":                  func(*rapid.T) { w.heartbeat(w.machineOf(node())) },
			"node controller":          func(*rapid.T) { w.nodeController(node()) },
			"attach":                   func(*rapid.T) { w.attach(t, volume(), node()) },
			"attach again":             func(*rapid.T) { w.attach(t, volume(), node()) },
			"mount":                    func(*rapid.T) { w.mount(volume(), node()) },
			"attach and mount":         func(*rapid.T) { v, n := volume(), node(); w.attach(t, v, n); w.mount(v, n) },
			"pod leaves":               func(*rapid.T) { w.letGo(volume(), node()) },
			"detach":                   func(*rapid.T) { w.detach(volume().Name, node()) },
			"attach-detach controller": func(*rapid.T) { w.detachAll(node()) },
			// csi-addons.
			"csi-addons":       func(*rapid.T) { w.csiAddons(t, fenceName(), "succeeds") },
			"csi-addons again": func(*rapid.T) { w.csiAddons(t, fenceName(), "succeeds") },
			"csi-addons fails": func(*rapid.T) {
				w.csiAddons(t, fenceName(), rapid.SampledFrom([]string{"fails", "status is lost"}).Draw(t, "how"))
			},
			"csi-addons starts anew": func(*rapid.T) { w.restartCSIAddons() },
			"driver": func(t *rapid.T) {
				d := rapid.SampledFrom([]string{rbd, cephFS, other}).Draw(t, "driver")
				w.driverUp[d] = !w.driverUp[d]
			},
			// People.
			"taint":      func(*rapid.T) { w.taint(node(), true, false) },
			"untaint":    func(*rapid.T) { w.taint(node(), false, false) },
			"nodes gate": func(*rapid.T) { w.nodesGate = !w.nodesGate },
			"own taint": func(*rapid.T) {
				n := node()
				if w.nodes[n].uid != "" && !w.nodes[n].ready {
					w.taint(n, true, true)
				}
			},
			"delete node": func(*rapid.T) { w.deleteNode(node()) },
			"replace node": func(*rapid.T) {
				if len(w.machines) < 5 {
					w.replace(node())
				}
			},
			"override": func(t *rapid.T) {
				if overrides {
					w.override(anyName(), rapid.SampledFrom(Gates()).Draw(t, "gate"))
				}
			},
			"switch": func(t *rapid.T) {
				if switches {
					w.setMode(rapid.SampledFrom([]string{rbd, cephFS, other}).Draw(t, "driver"), rapid.SampledFrom([]Mode{ModeFence, ModeFence, ModeGuard, ModeOff}).Draw(t, "mode"))
				}
			},
			"tamper": func(t *rapid.T) {
				if tampers {
					w.meddle(t, fenceName(), rapid.SampledFrom([]string{"flip", "delete", "edit", "empty"}).Draw(t, "how"))
				}
			},
			"foreign fence": func(t *rapid.T) {
				if tampers {
					w.foreign(w.machines[rapid.IntRange(0, len(w.machines)-1).Draw(t, "machine")], rapid.Bool().Draw(t, "unfenced"))
				}
			},
			// Fairlead.
			"fairlead":       func(*rapid.T) { w.act(t, w.view(), anyName(), w.now, 100) },
			"fairlead again": func(*rapid.T) { w.act(t, w.view(), anyName(), w.now, 100) },
			"fairlead crashes": func(t *rapid.T) {
				w.act(t, w.view(), anyName(), w.now, rapid.IntRange(0, 2).Draw(t, "after writes"))
			},
			"fairlead on a stale cache": func(t *rapid.T) {
				v := w.view()
				old := func(what string) view {
					o := w.views[rapid.IntRange(0, len(w.views)-1).Draw(t, what)]
					v.step = o.step
					return o
				}
				if len(w.views) == 0 {
					return
				}
				switch rapid.IntRange(0, 3).Draw(t, "what") {
				case 0:
					v.nodes = old("nodes").nodes
				case 1:
					v.attachments = old("attachments").attachments
				case 2:
					v.fences = old("fences").fences
				case 3:
					v.records = old("records").records
				}
				w.act(t, v, anyName(), w.now, 100)
			},
			"an old leader": func(t *rapid.T) {
				if len(w.views) > 0 {
					v := w.views[rapid.IntRange(0, len(w.views)-1).Draw(t, "view")]
					w.act(t, v, anyName(), v.now, 100)
				}
			},
			// Without these, chance alone seldom gets to the far end of an incident.
			"a node is lost": func(t *rapid.T) {
				n := node()
				m := w.machineOf(n)
				m.reaches = false
				w.now = w.now.Add(time.Minute)
				w.nodeController(n)
				w.taint(n, true, false)
				w.detachAll(n)
			},
			"a node comes back": func(t *rapid.T) {
				m := w.machineOf(node())
				w.reboot(m)
				w.heartbeat(m)
				w.now = w.now.Add(time.Minute)
				w.taint(m.node, false, false)
			},
			"all goes well for a while": func(t *rapid.T) {
				for range rapid.IntRange(1, 8).Draw(t, "rounds") {
					w.goWell(t)
				}
			},
		})
		w.mustFinish(t)
		w.mustRecover(t, node())
	})
}

func (w *world) stopScrap() {
	for _, m := range w.machines {
		if m.scrap {
			m.on, m.mounts = false, map[string]bool{}
		}
	}
}

func (w *world) detachAll(node string) {
	for _, v := range worldVolumes {
		w.detach(v.Name, node)
	}
}

// settleDown until a node's record says nothing new.
func (w *world) settleDown(t *rapid.T, name string) {
	for range 6 {
		w.act(t, w.view(), name, w.now, 100)
	}
}

// meddle with a NetworkFence, as anybody may who is allowed to write it.
func (w *world) meddle(t *rapid.T, name, how string) {
	f, there := w.fences[name]
	if !there || f.Deleting {
		return
	}
	switch how {
	case "flip":
		f.Unfenced, f.flipped, f.due = !f.Unfenced, true, true
	case "delete":
		f.Deleting = true
	case "edit":
		f.CIDRs, f.flipped, f.due = []string{"10.9.9.9/32"}, true, true
	case "empty":
		f.CIDRs, f.flipped, f.due = nil, true, true
	}
	w.put(name, f)
}

// foreign is a NetworkFence that somebody else made, or left over.
func (w *world) foreign(m *machine, unfenced bool) {
	name := fmt.Sprint("foreign-", w.id())
	w.fences[name] = networkFence{NetworkFence: NetworkFence{
		Name: name, ResourceVersion: "1", Driver: rbd, CIDRs: []string{HostPrefix(m.address["a"]).String()}, Unfenced: unfenced, Created: w.now,
	}, version: 1, due: true, made: w.step}
}

// goWell is one round in which everybody does his part.
func (w *world) goWell(t *rapid.T) {
	w.now = w.now.Add(5 * time.Second)
	for _, n := range w.nodeNames() {
		w.heartbeat(w.machineOf(n))
		w.nodeController(n)
		w.detachAll(n)
	}
	for _, n := range w.everyName() {
		w.act(t, w.view(), n, w.now, 100)
		w.check(t)
	}
	for _, name := range sortedKeys(w.fences) {
		w.csiAddons(t, name, "succeeds")
		w.check(t)
	}
	w.step++
}

// mustFinish stops all mischief: nothing that happened may have left a node shut
// out, a volume held, or an address blocked for ever.
func (w *world) mustFinish(t *rapid.T) {
	w.nodesGate = true
	w.stopScrap()
	for driver := range modelDrivers {
		w.modes[driver], w.driverUp[driver] = ModeFence, true
	}
	w.silent = map[string]bool{}
	for name, f := range w.fences {
		if !f.ours {
			delete(w.fences, name)
		}
	}
	for _, n := range w.nodeNames() {
		w.reboot(w.machineOf(n))
	}
	for i := range 60 {
		if w.goWell(t); i > 2 && w.isQuiet() {
			break
		}
		for _, n := range w.nodeNames() {
			w.taint(n, false, false)
			if r := w.records[n]; i > 10 && r.status.Phase != v1alpha1.NodeHealthy && r.status.Phase != v1alpha1.NodeReturned && r.status.Phase != v1alpha1.NodeUnfencing {
				if o := ReadOverride(r.annotations, r.status); o.Gate != GateUnfence {
					w.override(n, GateUnfence) // the operator knows that the old machine is off
				}
			}
		}
	}
	for name, r := range w.records {
		if r.status.Phase != v1alpha1.NodeHealthy || len(r.status.Fences) > 0 {
			t.Fatalf("%s does not become healthy\n%s", name, w)
		}
	}
	for name, f := range w.fences {
		if f.ours {
			t.Fatalf("%s is left over\n%s", name, w)
		}
	}
	for cluster, blocks := range w.blocks {
		for cidr, b := range blocks {
			if b.ours {
				t.Fatalf("%s stays blocked at %s\n%s", cidr, cluster, w)
			}
		}
	}
	for _, v := range worldVolumes {
		for _, n := range w.nodeNames() {
			if held := w.gate(v, n); held != nil {
				t.Fatalf("%s is held from %s for ever: %s\n%s", v.Name, n, held.Message, w)
			}
		}
	}
}

// mustRecover: when everybody does his part, a node that is lost is fenced, its
// volume goes elsewhere, and when it has booted it is let in and nothing is left.
func (w *world) mustRecover(t *rapid.T, lost string) {
	m, v := w.machineOf(lost), volumeNamed("pv-rbd")
	for _, o := range w.machines {
		if o != m && !o.scrap && o.address["a"] == m.address["a"] {
			return // a live node has its address: it is not fenced
		}
	}
	w.automatic = false
	w.attach(t, v, lost)
	w.mount(v, lost)
	w.settleDown(t, lost)
	m.reaches = false
	for w.nodes[lost].ready {
		w.goWell(t)
	}
	w.taint(lost, true, false)
	w.attachments = nil // by force
	rounds := 0
	for other := w.nodeNames()[0]; ; rounds++ {
		if other == lost {
			other = w.nodeNames()[1]
		}
		w.attach(t, v, other)
		if slices.Contains(w.attachedTo(v.Name), other) {
			break
		}
		if rounds > 6 {
			t.Fatalf("%s is not let go of\n%s", v.Name, w)
		}
		w.goWell(t)
	}
	if phase := w.records[lost].status.Phase; phase != v1alpha1.NodeFenced && phase != v1alpha1.NodeDrained || !w.blocked(m, "a") {
		t.Fatalf("%s is let go of in phase %s\n%s", v.Name, phase, w)
	}
	m.reaches = true
	for range 3 {
		w.goWell(t)
	}
	if !w.blocked(m, "a") || !w.nodes[lost].taint {
		t.Fatalf("%s is let in without a boot\n%s", lost, w)
	}
	w.reboot(m)
	for range 2 {
		w.goWell(t)
	}
	if w.taint(lost, false, false); w.nodes[lost].taint {
		t.Fatalf("the taint of %s may not go although it has booted\n%s", lost, w)
	}
	for rounds = 0; !w.isQuiet() || w.blocked(m, "a"); rounds++ {
		if rounds > 12 {
			t.Fatalf("%s is not let in again\n%s", lost, w)
		}
		w.goWell(t)
	}
}

// isQuiet: all nodes are healthy, and no NetworkFence is left.
func (w *world) isQuiet() bool {
	for _, r := range w.records {
		if r.status.Phase != v1alpha1.NodeHealthy {
			return false
		}
	}
	return len(w.records) == len(w.nodes) && len(w.fences) == 0
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

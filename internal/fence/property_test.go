package fence

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// Invariant 10 of the design, over random interleavings of the world in model_test.go, checked at every step:
//
//   - no exclusive volume can be written to from two machines; neither the gate nor the API server's own policies release
//     one to any node while another machine writes to it
//   - what is recorded as fenced is blocked; a machine that Fairlead unfences has rebooted, or has no old mounts
//   - Fairlead blocks no machine that was not given up
//   - when everybody does his part again, all nodes become healthy, all volumes are released, and nothing stays blocked;
//     a node that is lost then is fenced, its volumes are released, and it is unfenced
//
// Excused is only what an operator answers for: overrides, volumes of a driver that is switched off, and addresses that
// people unblock behind Fairlead's back until it can see that. broken_test.go proves that faults are found.
func TestFenceInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { interleave(t, noFault()) })
}

func interleave(t *rapid.T, broken fault) {
	w := newWorld(3, rapid.IntRange(0, 3).Draw(t, "shared address") == 3)
	w.broken = broken
	w.noUUIDs = rapid.IntRange(0, 3).Draw(t, "no UUIDs") == 3
	w.automatic = rapid.IntRange(0, 3).Draw(t, "automatic") == 3
	actions := map[string]func(*rapid.T){"": func(t *rapid.T) {
		w.check(t)
		w.step++
		if w.views = append(w.views, w.view()); len(w.views) > 8 {
			w.views = w.views[1:]
		}
	}}
	for _, some := range []map[string]func(*rapid.T){w.machineActions(), w.kubernetesActions(), w.csiAddonsActions(), w.fairleadActions(), w.storylines(), w.peopleActions(t)} {
		maps.Copy(actions, some)
	}
	for _, n := range w.nodeNames() {
		w.settleDown(t, n)
	}
	t.Repeat(actions)
	w.mustFinish(t)
	w.mustRecover(t)
}

func drawOf[T any](t *rapid.T, what string, from ...T) T {
	return rapid.SampledFrom(from).Draw(t, what)
}

// maybe does something in half of the runs.
func maybe(t *rapid.T, what string, do func()) {
	if rapid.Bool().Draw(t, what) {
		do()
	}
}

// must ends the run with the state of the world.
func (w *world) must(t *rapid.T, is bool, format string, args ...any) {
	if !is {
		t.Fatalf(format+"\n%s", append(args, w)...)
	}
}

func (w *world) drawNode(t *rapid.T) string      { return drawOf(t, "node", w.nodeNames()...) }
func (w *world) drawMachine(t *rapid.T) *machine { return w.machineOf(w.drawNode(t)) }
func drawDriver(t *rapid.T) string               { return drawOf(t, "driver", rbd, cephFS, other) }

func drawVolume(t *rapid.T) Volume {
	return worldVolumes[rapid.IntRange(0, len(worldVolumes)-1).Draw(t, "volume")]
}

// drawKey of a map in a fixed order; "" if it is empty.
func drawKey[V any](t *rapid.T, what string, from map[string]V) string {
	if len(from) == 0 {
		return ""
	}
	return drawOf(t, what, slices.Sorted(maps.Keys(from))...)
}

// drawName of a node or of a record that outlives its node.
func (w *world) drawName(t *rapid.T) string {
	if names := w.everyName(); len(names) > 0 {
		return drawOf(t, "name", names...)
	}
	return w.drawNode(t)
}

// decidedOn are the addresses of the machines of a name about which a view leads to a decision, as controllers/fencing has them.
func (w *world) decidedOn(v view, node string) (addresses []string) {
	for _, name := range v.records.names(node) {
		f, there := w.facts(v, node, name, w.now.Add(v.leader.skew))
		step := Next(f)
		if !there || equality.Semantic.DeepEqual(f.Status, step.Status) && len(step.Create)+len(step.Unfence)+len(step.Delete) == 0 {
			continue
		}
		for _, s := range []v1alpha1.NodeFenceStatus{f.Status, step.Status} {
			for _, i := range s.Identities {
				for _, a := range i.Addresses {
					addresses = append(addresses, a.CIDR)
				}
			}
			for _, r := range s.Fences {
				addresses = append(addresses, r.CIDRs...)
			}
		}
	}
	return addresses
}

// running acts on a machine that is on.
func (w *world) running(do func(*rapid.T, *machine)) func(*rapid.T) {
	return func(t *rapid.T) {
		if m := w.drawMachine(t); m.on {
			do(t, m)
		}
	}
}

func (w *world) machineActions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"pass time": func(t *rapid.T) {
			w.pass(drawOf(t, "passes", time.Second, 7*time.Second, 30*time.Second, 3*time.Minute, 7*time.Minute))
		},
		"partition":       func(t *rapid.T) { w.drawMachine(t).reaches = false },
		"partition heals": func(t *rapid.T) { w.heal(w.drawMachine(t)) },
		"power fails":     func(t *rapid.T) { w.drawMachine(t).stop() },
		"reboot":          func(t *rapid.T) { w.reboot(w.drawMachine(t)) },
		"machine comes back under another name": func(t *rapid.T) {
			if m := w.drawMachine(t); w.nodes[m.node].uid != "" && len(w.everyName()) < 5 {
				w.rename(m, rapid.Bool().Draw(t, "it boots"))
			}
		},
		"old machines stop": func(*rapid.T) { w.stopScrap() },
		"address is given to another": func(t *rapid.T) {
			from, to := w.drawMachine(t), w.drawMachine(t)
			if from == to || from.on {
				return
			}
			// The machine that is off gets another when it comes back.
			w.reboot(to)
			to.address, to.since = from.address, w.step
			from.address, from.since = w.newAddresses(), w.step
		},
	}
}

func (w *world) kubernetesActions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"kubelet":              func(t *rapid.T) { w.heartbeat(w.drawMachine(t)) },
		"kubelet starts again": w.running(func(_ *rapid.T, m *machine) { w.startKubelet(m) }),
		"kubelet says Ready, or not": w.running(func(_ *rapid.T, m *machine) {
			m.unready = !m.unready
			w.heartbeat(m)
		}),
		"client pods start again": w.running(func(t *rapid.T, m *machine) { w.startClients(m, rapid.Bool().Draw(t, "by an earlier address")) }),
		"a pod waits for a volume": func(t *rapid.T) {
			v, m := drawVolume(t), w.drawMachine(t)
			if m.on && m.reaches && m.mounts[v.Name] == nil {
				m.waits[v.Name] = true
				w.heartbeat(m)
			}
		},
		"node controller":          func(t *rapid.T) { w.nodeController(w.drawNode(t)) },
		"attach":                   func(t *rapid.T) { w.attach(t, drawVolume(t), w.drawNode(t)) },
		"mount":                    func(t *rapid.T) { w.mount(drawVolume(t), w.drawNode(t)) },
		"attach and mount":         func(t *rapid.T) { w.use(t, drawVolume(t), w.drawNode(t)) },
		"pod leaves":               func(t *rapid.T) { w.endPod(drawVolume(t), w.drawNode(t)) },
		"detach":                   func(t *rapid.T) { w.detach(drawVolume(t).Name, w.drawNode(t)) },
		"attach-detach controller": func(t *rapid.T) { w.detachAll(w.drawNode(t)) },
	}
}

func (w *world) csiAddonsActions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"CSIAddonsNode": func(t *rapid.T) { n := w.drawNode(t); w.silent[n] = !w.silent[n] },
		"csi-addons":    func(t *rapid.T) { w.csiAddons(t, drawKey(t, "fence", w.fences), "succeeds") },
		"csi-addons fails": func(t *rapid.T) {
			w.csiAddons(t, drawKey(t, "fence", w.fences), drawOf(t, "how", "fails", "status is lost"))
		},
		"csi-addons starts again": func(*rapid.T) { w.restartCSIAddons() },
		"driver":                  func(t *rapid.T) { d := drawDriver(t); w.driverUp[d] = !w.driverUp[d] },
	}
}

func (w *world) fairleadActions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"fairlead": func(t *rapid.T) { w.act(t, w.view(), w.drawName(t), w.now, 100) },
		// A round decides on all nodes by one view, but on one only of those with one address.
		"fairlead on all nodes": func(t *rapid.T) {
			v, taken := w.view(), map[string]bool{}
			for _, node := range w.everyName() {
				addresses := w.decidedOn(v, node)
				if slices.ContainsFunc(addresses, func(a string) bool { return taken[a] }) {
					continue
				}
				for _, a := range addresses {
					taken[a] = true
				}
				w.act(t, v, node, w.now, 100)
			}
		},
		"fairlead crashes": func(t *rapid.T) {
			w.act(t, w.view(), w.drawName(t), w.now, rapid.IntRange(0, 2).Draw(t, "after writes"))
		},
		"fairlead goes away": func(*rapid.T) { w.leader.away = true },
		"another leader":     func(t *rapid.T) { w.lead(drawOf(t, "clock is off by", 0, time.Hour, -time.Hour)) },
		// Caches of each kind lag independently.
		"fairlead on a stale cache": func(t *rapid.T) {
			if len(w.views) == 0 {
				return
			}
			old := w.views[rapid.IntRange(0, len(w.views)-1).Draw(t, "view")]
			name, of := w.drawName(t), drawOf(t, "of", "nodes", "attachments", "fences", "records")
			for range rapid.IntRange(1, 6).Draw(t, "looks") {
				v := w.view()
				v.step, v.cached = old.step, true
				switch of {
				case "nodes":
					v.nodes = old.nodes
				case "attachments":
					v.attachments = old.attachments
				case "fences":
					v.fences = old.fences
				case "records":
					v.records = old.records
				}
				w.act(t, v, name, w.now, 100)
			}
		},
		"an old leader": func(t *rapid.T) {
			if len(w.views) > 0 {
				v := w.views[rapid.IntRange(0, len(w.views)-1).Draw(t, "view")]
				w.act(t, v, w.drawName(t), v.now, 100)
			}
		},
	}
}

func (w *world) peopleActions(t *rapid.T) map[string]func(*rapid.T) {
	actions := map[string]func(*rapid.T){
		"taint":      func(t *rapid.T) { w.taint(w.drawNode(t), true, false) },
		"untaint":    func(t *rapid.T) { w.taint(w.drawNode(t), false, false) },
		"nodes gate": func(*rapid.T) { w.nodesGate = !w.nodesGate },
		"own taint": func(t *rapid.T) {
			if n := w.drawNode(t); w.nodes[n].uid != "" && !w.nodes[n].ready {
				w.taint(n, true, true)
			}
		},
		"delete node": func(t *rapid.T) { w.deleteNode(w.drawNode(t)) },
		"replace node": func(t *rapid.T) {
			if len(w.machines) < 5 {
				w.replace(w.drawNode(t))
			}
		},
	}
	if rapid.IntRange(0, 2).Draw(t, "people override") == 2 {
		actions["override"] = func(t *rapid.T) { w.override(drawKey(t, "record", w.records), drawOf(t, "gate", Gates()...)) }
	}
	if rapid.IntRange(0, 4).Draw(t, "people switch off") == 4 {
		actions["switch"] = func(t *rapid.T) {
			w.setMode(drawDriver(t), drawOf(t, "mode", ModeFence, ModeFence, ModeGuard, ModeOff))
		}
		actions["a node goes while it is switched off"] = func(t *rapid.T) {
			m, v := w.drawMachine(t), drawVolume(t)
			w.useOnRecord(t, v, m.node)
			w.setMode(v.Driver, ModeOff)
			w.silence(m)
			w.deleteNode(m.node)
			w.settleDown(t, m.node)
			w.detachAll(m.node)
			w.settleDown(t, m.node)
			w.setMode(v.Driver, ModeFence)
			w.settleDown(t, m.node)
		}
	}
	if rapid.IntRange(0, 4).Draw(t, "people switch all off") == 4 {
		actions["another machine has the name of one that is forgotten"] = func(t *rapid.T) {
			if len(w.machines) >= 5 {
				return
			}
			n := w.drawNode(t)
			w.useOnRecord(t, drawVolume(t), n)
			w.replace(n)
			w.heartbeat(w.machineOf(n))
			w.settleDown(t, n)
			w.detachAll(n)
			w.useOnRecord(t, drawVolume(t), n)
			modes := maps.Clone(w.modes)
			for driver := range modelDrivers {
				w.setMode(driver, ModeOff)
			}
			w.settleDown(t, n)
			maybe(t, "the other machine goes too", func() {
				w.machineOf(n).reaches = false
				w.deleteNode(n)
				w.settleDown(t, n)
				w.detachAll(n)
				w.settleDown(t, n)
			})
			w.modes = modes
			w.settleDown(t, n)
		}
	}
	if rapid.IntRange(0, 2).Draw(t, "people tamper") == 2 {
		meddle := func(t *rapid.T) {
			w.meddle(t, drawKey(t, "fence", w.fences), drawOf(t, "how", "flip", "flip there and back", "delete", "edit", "empty"))
		}
		actions["tamper"], actions["tamper again"] = meddle, meddle
		actions["foreign fence"] = func(t *rapid.T) {
			w.foreign(w.machines[rapid.IntRange(0, len(w.machines)-1).Draw(t, "machine")], rapid.Bool().Draw(t, "unfenced"))
		}
	}
	return actions
}

// storylines: without them, chance alone seldom gets to the far end of an incident.
func (w *world) storylines() map[string]func(*rapid.T) {
	allGoesWell := func(t *rapid.T) { w.goWellFor(t, rapid.IntRange(1, 8).Draw(t, "rounds")) }
	isUsed := func(t *rapid.T) {
		n := w.drawNode(t)
		w.useOnRecord(t, drawVolume(t), n)
	}
	isLost := func(t *rapid.T, n string) {
		w.machineOf(n).reaches = false
		w.pass(time.Minute)
		w.nodeController(n)
		w.taint(n, true, false)
		w.detachAll(n)
	}
	return map[string]func(*rapid.T){
		"all goes well for a while":       allGoesWell,
		"all goes well for another while": allGoesWell,
		"a volume is used":                isUsed,
		"another volume is used":          isUsed,
		"a node is lost":                  func(t *rapid.T) { isLost(t, w.drawNode(t)) },
		"all nodes are lost": func(t *rapid.T) {
			for _, n := range w.nodeNames() {
				isLost(t, n)
			}
		},
		"a node is lost with what the cache has not seen, and its object goes": func(t *rapid.T) {
			n, old := w.drawNode(t), w.view()
			if w.present(n).Override.Gate == GateAttach {
				return // an operator answers for this loss
			}
			w.useOnRecord(t, drawVolume(t), n)
			isLost(t, n)
			v := w.view()
			v.nodes, v.cached, v.step = old.nodes, true, w.step-1
			w.act(t, v, n, w.now, 100)
			w.deleteNode(n)
			w.settleDown(t, n)
		},
		"a node is lost whose CSIAddonsNodes did not report since it booted": func(t *rapid.T) {
			m, v := w.drawMachine(t), volumeNamed("pv-other")
			w.silent[m.node] = true
			w.reboot(m)
			w.heartbeat(m)
			w.useOnRecord(t, v, m.node)
			isLost(t, m.node)
			w.settleFences(t, m.node)
			w.settleFences(t, m.node)
			w.use(t, v, w.drawNode(t))
		},
		"two at one address are lost, and one comes back": func(t *rapid.T) {
			a, b := w.machineOf("node-1"), w.machineOf("node-2")
			if a == nil || b == nil || a.address["a"] != b.address["a"] {
				return
			}
			for _, m := range []*machine{a, b} {
				w.useOnRecord(t, drawVolume(t), m.node)
			}
			isLost(t, a.node)
			isLost(t, b.node)
			allGoesWell(t)
			w.returnRebooted(a)
			allGoesWell(t)
		},
		"fairlead fences it": func(t *rapid.T) {
			n := w.drawNode(t)
			w.settleDown(t, n)
			maybe(t, "csi-addons is up", func() { w.csiAddonsRound(t) })
			w.settleDown(t, n)
		},
		"fairlead is away": func(t *rapid.T) {
			m, v := w.drawMachine(t), drawVolume(t)
			w.useOnRecord(t, v, m.node)
			maybe(t, "it is lost before", func() {
				isLost(t, m.node)
				w.settleFences(t, m.node)
			})
			w.leader.away = true
			maybe(t, "it reboots", func() { w.reboot(m) })
			w.heal(m)
			maybe(t, "untainted", func() { w.taint(m.node, false, false) })
			maybe(t, "client pods start again", func() { w.startClients(m, false) })
			w.use(t, v, m.node)
			w.loseByForce(m)
			maybe(t, "its object goes", func() { w.deleteNode(m.node) })
			w.detachAll(m.node)
			w.pass(drawOf(t, "away for", time.Minute, time.Hour))
			maybe(t, "it is back before Fairlead", func() { w.heal(m) })
			w.settleFences(t, m.node)
			w.use(t, v, w.drawNode(t))
			w.heal(m)
			maybe(t, "its kubelet starts again", func() { w.startKubelet(m) })
			w.settleFences(t, m.node)
			w.pass(time.Minute)
			w.settleFences(t, m.node)
			w.use(t, v, w.drawNode(t))
		},
		"a volume that waits is mounted unseen": func(t *rapid.T) {
			m, v := w.drawMachine(t), drawVolume(t)
			if m.on && m.reaches && m.mounts[v.Name] == nil {
				m.waits[v.Name] = true
			}
			w.heartbeat(m)
			w.settleDown(t, m.node)
			w.leader.away = true
			w.use(t, v, m.node)
			w.loseByForce(m)
			maybe(t, "it boots", func() { w.reboot(m); w.heal(m); w.use(t, v, m.node); w.loseByForce(m) })
			w.heal(m)
			maybe(t, "Fairlead looks", func() { w.settleDown(t, m.node) })
			w.use(t, v, w.drawNode(t))
		},
		"the record of a healthy node is restored from an older backup": func(t *rapid.T) {
			m, v := w.drawMachine(t), drawVolume(t)
			w.settleDown(t, m.node)
			name, backup := w.healthyRecord(m)
			w.useOnRecord(t, v, m.node)
			maybe(t, "it boots", func() { w.reboot(m); w.heal(m); w.useOnRecord(t, v, m.node) })
			if now, r := w.healthyRecord(m); name != "" && now == name {
				w.leader.away = true
				r.status, r.version = *backup.status.DeepCopy(), w.id()
				w.records[name] = r
			}
			w.settleDown(t, m.node)
			maybe(t, "it is lost", func() { isLost(t, m.node); w.settleFences(t, m.node) })
			w.use(t, v, w.drawNode(t))
		},
		"a fenced machine comes back under another name": func(t *rapid.T) {
			m := w.drawMachine(t)
			if len(w.everyName()) >= 5 || w.nodes[m.node].uid == "" {
				return
			}
			old := m.node
			w.useOnRecord(t, drawVolume(t), old)
			isLost(t, old)
			w.settleFences(t, old)
			w.rename(m, rapid.Bool().Draw(t, "it boots"))
			w.heal(m)
			w.settleDown(t, m.node)
			w.pass(time.Minute)
			w.settleFences(t, old)
		},
		"a node is shut down": func(t *rapid.T) {
			m := w.drawMachine(t)
			if m.unready = true; !m.on || !m.reaches {
				return
			}
			w.heartbeat(m)
			w.settleDown(t, m.node)
			for _, v := range worldVolumes {
				w.endPod(v, m.node)
			}
			w.heartbeat(m)
			for range rapid.IntRange(0, 1).Draw(t, "fairlead looks") {
				w.settleDown(t, m.node)
			}
			w.detachAll(m.node)
			w.settleDown(t, m.node)
			maybe(t, "it is off", m.stop)
		},
		"a node comes back": func(t *rapid.T) { w.returnRebooted(w.drawMachine(t)) },
		"a mark is lost": func(t *rapid.T) {
			w.settleAll(t)
			w.attachUnmarked(t, drawVolume(t), w.drawNode(t))
		},
		"a node comes back with what was taken by force, and a mark is lost": func(t *rapid.T) {
			m, v := w.drawMachine(t), drawVolume(t)
			w.useOnRecord(t, v, m.node)
			w.silence(m)
			w.pass(6 * time.Minute)
			w.settleDown(t, m.node)
			w.detachAll(m.node)
			maybe(t, "its kubelet starts again", func() { w.startKubelet(m) })
			w.heal(m)
			w.settleAll(t)
			maybe(t, "it is attached again, and at once detached", func() {
				w.attach(t, v, m.node)
				w.settleDown(t, m.node)
				w.detach(v.Name, m.node)
				w.settleDown(t, m.node)
			})
			w.attachUnmarked(t, v, w.drawNode(t))
		},
		"a node is lost, maybe twice, and a mark is lost": func(t *rapid.T) {
			w.settleAll(t)
			m, v := w.drawMachine(t), drawVolume(t)
			maySettle := func() {
				switch drawOf(t, "Fairlead", "sleeps", "looks", "crashes after a write") {
				case "looks":
					w.settleDown(t, m.node)
				case "crashes after a write":
					w.act(t, w.view(), m.node, w.now, 1)
				}
			}
			maybe(t, "twice", func() {
				w.silence(m)
				maySettle()
				w.heal(m)
			})
			w.attachUnmarked(t, v, m.node)
			w.mount(v, m.node)
			maySettle()
			w.silence(m)
			maySettle()
			w.pass(6 * time.Minute)
			w.detachAll(m.node)
			w.attachUnmarked(t, v, w.drawNode(t))
		},
		"a node is lost and back while Fairlead does not look": func(t *rapid.T) {
			m, v := w.drawMachine(t), drawVolume(t)
			w.useOnRecord(t, v, m.node)
			w.loseByForce(m)
			maybe(t, "its object is recreated", func() { w.deleteNode(m.node) })
			maybe(t, "its kubelet starts again", func() { w.startKubelet(m) })
			w.heal(m)
			maybe(t, "Fairlead looks", func() { w.settleDown(t, m.node) })
			w.use(t, v, w.drawNode(t))
		},
		"a node comes back without a boot": func(t *rapid.T) {
			m := w.drawMachine(t)
			w.heal(m)
			w.pass(time.Minute)
			was := w.nodesGate
			w.nodesGate = rapid.Bool().Draw(t, "gate")
			w.taint(m.node, false, false)
			w.nodesGate = was
		},
	}
}

func (w *world) stopScrap() {
	for _, m := range w.machines {
		if m.scrap {
			m.stop()
		}
	}
}

func (w *world) detachAll(node string) {
	for _, v := range worldVolumes {
		w.detach(v.Name, node)
	}
}

// settleDown until Fairlead has nothing to do for a node name.
func (w *world) settleDown(t *rapid.T, name string) {
	for range 6 {
		if !w.act(t, w.view(), name, w.now, 100) {
			w.mustBeOnRecord(t, name)
			return
		}
		w.check(t)
	}
}

func (w *world) settleAll(t *rapid.T) {
	for _, n := range w.everyName() {
		w.settleDown(t, n)
	}
}

// mustBeOnRecord: a machine that is Ready has a record of its boot; a machine that went while its driver was switched off
// has no volumes of that driver on record.
func (w *world) mustBeOnRecord(t *rapid.T, name string) {
	n, s := w.nodes[name], w.present(name).Status
	w.must(t, !n.ready || len(s.Fences) > 0 || s.Node.BootID == n.bootID, "%s is Ready, and its record is of another boot", name)
	for _, r := range w.records.names(name) {
		s := w.records[r].status
		for _, v := range s.Volumes {
			off := w.modes[v.Driver] == ModeOff && s.Gone && len(s.Fences) == 0
			w.must(t, !off, "%s is on record of a machine that had the name %s and went while the driver was switched off", v.PersistentVolume, name)
		}
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
	case "flip there and back":
		w.meddle(t, name, "flip")
		w.csiAddons(t, name, "succeeds")
		w.meddle(t, name, "flip")
		return
	case "delete":
		f.Deleting = true
	case "edit":
		f.CIDRs, f.flipped, f.due = []string{"10.9.9.9/32"}, true, true
	case "empty":
		f.CIDRs, f.flipped, f.due = nil, true, true
	}
	w.put(name, f)
}

// foreign is a NetworkFence that another party made, or left over.
func (w *world) foreign(m *machine, unfenced bool) {
	name := fmt.Sprint("foreign-", w.id())
	w.fences[name] = networkFence{NetworkFence: NetworkFence{
		Name: name, ResourceVersion: "1", Driver: rbd, CIDRs: []string{HostPrefix(m.address["a"]).String()}, Unfenced: unfenced,
	}, version: 1, due: true, made: w.step}
}

// use a volume: attach it, through the gate, and mount it.
func (w *world) use(t *rapid.T, v Volume, node string) {
	w.attach(t, v, node)
	w.mount(v, node)
}

func (w *world) csiAddonsRound(t *rapid.T) {
	for _, name := range slices.Sorted(maps.Keys(w.fences)) {
		w.csiAddons(t, name, "succeeds")
		w.check(t)
	}
}

// useOnRecord uses a volume, and Fairlead sees that.
func (w *world) useOnRecord(t *rapid.T, v Volume, node string) {
	w.use(t, v, node)
	w.settleDown(t, node)
}

// healthyRecord of a machine, and its name; "" if it has none.
func (w *world) healthyRecord(m *machine) (string, record) {
	for _, name := range w.records.names(m.node) {
		if r := w.records[name]; r.status.Node.SystemUUID == m.uuid && r.status.Phase == v1alpha1.NodeHealthy && len(r.status.Fences) == 0 {
			return name, r
		}
	}
	return "", record{}
}

// silence a machine, and the node controller notices.
func (w *world) silence(m *machine) {
	m.reaches = false
	w.nodeController(m.node)
}

// loseByForce a silent machine: Kubernetes detaches its volumes by force.
func (w *world) loseByForce(m *machine) {
	w.silence(m)
	w.pass(6 * time.Minute)
	w.detachAll(m.node)
}

// returnRebooted: the machine returns after a reboot, untainted.
func (w *world) returnRebooted(m *machine) {
	w.reboot(m)
	w.heartbeat(m)
	w.pass(time.Minute)
	w.taint(m.node, false, false)
}

// settleFences: Fairlead requests, csi-addons acts, Fairlead sees that.
func (w *world) settleFences(t *rapid.T, node string) {
	w.settleDown(t, node)
	w.csiAddonsRound(t)
	w.settleDown(t, node)
}

func (w *world) goWellFor(t *rapid.T, rounds int) {
	for range rounds {
		w.goWell(t)
	}
}

// goWell is one round in which everybody does his part.
func (w *world) goWell(t *rapid.T) {
	w.pass(5 * time.Second)
	for _, n := range w.nodeNames() {
		w.heartbeat(w.machineOf(n))
		w.nodeController(n)
	}
	for _, n := range w.everyName() {
		w.detachAll(n)
		w.settleDown(t, n)
	}
	// Also of nodes without Node and record.
	w.attachments = slices.DeleteFunc(w.attachments, func(a attachment) bool { _, there := w.nodes[a.node]; return !there })
	w.csiAddonsRound(t)
	w.step++
}

// mustFinish stops all mischief: then no node stays fenced, no volume held, and no address blocked.
func (w *world) mustFinish(t *rapid.T) {
	w.nodesGate = true
	w.stopScrap()
	for driver := range modelDrivers {
		w.modes[driver], w.driverUp[driver] = ModeFence, true
	}
	w.silent = map[string]bool{}
	maps.DeleteFunc(w.fences, func(_ string, f networkFence) bool { return !f.ours })
	for _, n := range w.nodeNames() {
		w.reboot(w.machineOf(n))
	}
	for i := range 60 {
		if w.goWell(t); i > 2 && w.isQuiet() {
			break
		}
		for _, n := range w.nodeNames() {
			w.taint(n, false, false)
		}
		for _, name := range slices.Sorted(maps.Keys(w.records)) {
			r := w.records[name]
			ends := []v1alpha1.NodeFencePhase{v1alpha1.NodeHealthy, v1alpha1.NodeReturned, v1alpha1.NodeUnfencing}
			if i > 10 && !slices.Contains(ends, r.status.Phase) && ReadOverride(r.annotations, r.status).Gate != GateUnfence {
				w.override(name, GateUnfence) // the operator knows that the old machine is off
			}
		}
	}
	w.pass(endsWithin)
	w.goWellFor(t, 5) // what lingered has ended, and the last nodes are unfenced
	for name, r := range w.records {
		w.must(t, r.status.Phase == v1alpha1.NodeHealthy && len(r.status.Fences) == 0, "%s does not become healthy", name)
	}
	for name, f := range w.fences {
		w.must(t, !f.ours, "%s is left over", name)
	}
	for cluster, blocks := range w.blocks {
		for cidr, b := range blocks {
			w.must(t, !b.ours, "%s stays blocked at %s", cidr, cluster)
		}
	}
	w.now = w.now.Add(endsWithin) // what was detached by force is given the time to end
	w.goWellFor(t, 3)
	for _, v := range worldVolumes {
		for _, n := range w.nodeNames() {
			held := w.gate(v, n)
			w.must(t, held == nil, "%s is held from %s forever: %+v", v.Name, n, held)
		}
	}
}

// mustRecover: a node that is lost is fenced, its volume goes elsewhere, and after a reboot it is unfenced.
func (w *world) mustRecover(t *rapid.T) {
	lost := w.drawNode(t)
	m := w.machineOf(lost)
	if slices.ContainsFunc(w.machines, func(o *machine) bool { return o != m && !o.scrap && o.address["a"] == m.address["a"] }) {
		return // a live node has its address, so it is not fenced
	}
	w.automatic = false
	maybe(t, "it comes back before it is fenced", func() { w.mustReturnUnfenced(t, m, volumeNamed("pv-rbd")) })
	w.mustBeFenced(t, m, volumeNamed("pv-rbd"))
	m.reaches = true
	maybe(t, "the taint goes too early", func() {
		w.nodesGate = false
		w.goWell(t)
		w.taint(lost, false, false)
		w.nodesGate = true
	})
	w.goWellFor(t, 8)
	w.must(t, w.blocked(m, "a"), "%s is unfenced without a reboot", lost)
	w.mustBeReadmitted(t, m, false)
	maybe(t, "it is lost again while it is unfenced", func() {
		w.mustBeFenced(t, m, volumeNamed("pv-other"))
		m.reaches = true
		w.mustBeReadmitted(t, m, true)
		w.mustBeFenced(t, m, volumeNamed("pv-other"))
		w.mustBeReadmitted(t, m, false)
	})
}

// mustReturnUnfenced: the node is lost, and before its fence is confirmed, it is Ready again in the same boot or its
// driver is switched off and on: it needs no reboot, and is not fenced.
func (w *world) mustReturnUnfenced(t *rapid.T, m *machine, v Volume) {
	boot := m.bootID()
	w.lose(t, m, v)
	w.settleDown(t, m.node)
	w.must(t, len(w.fences) > 0, "no fence is requested")
	hung := w.view()
	hung.fences = map[string]networkFence{} // a leader that has recorded the fence, and not created it yet
	for _, name := range slices.Sorted(maps.Keys(w.fences)) {
		w.csiAddons(t, name, drawOf(t, "how", "fails", "status is lost", "succeeds"))
	}
	switch drawOf(t, "how it ends", "it is Ready", "untainted", "switched off") {
	case "untainted":
		w.heal(m)
		w.taint(m.node, false, false)
	case "switched off":
		w.setMode(v.Driver, ModeOff)
		w.goWellFor(t, 4)
		w.setMode(v.Driver, ModeFence)
		w.must(t, len(w.fences) == 0 && !w.blocked(m, v.ClusterID), "%s is fenced although that is switched off", m.node)
	}
	w.heal(m)
	w.goWellFor(t, 4)
	w.taint(m.node, false, false)
	w.goWellFor(t, 4)
	maybe(t, "a leader that hung goes on", func() {
		w.act(t, hung, m.node, hung.now, 100)
		w.must(t, len(w.fences) > 0, "the leader that hung requests no fence")
		w.csiAddonsRound(t)
		w.goWellFor(t, 4)
	})
	well := m.bootID() == boot && w.isQuiet() && !w.blocked(m, "a") && !w.blocked(m, "b")
	w.must(t, well, "%s is not healthy, though it came back before it was fenced", m.node)
	w.pass(endsWithin)
	w.goWell(t)
}

// mustBeFenced: the node uses a volume, is lost, and another gets the volume.
func (w *world) mustBeFenced(t *rapid.T, m *machine, v Volume) {
	w.lose(t, m, v)
	to := w.nodeNames()[0]
	if to == m.node {
		to = w.nodeNames()[1]
	}
	for rounds := 0; !slices.Contains(w.attachedTo(v.Name), to); rounds++ {
		w.must(t, rounds <= 8, "%s is not released", v.Name)
		w.goWell(t)
		w.attach(t, v, to)
	}
}

// lose a node that uses a volume, and taint it.
func (w *world) lose(t *rapid.T, m *machine, v Volume) {
	for _, n := range w.nodeNames() {
		w.endPod(v, n)
		w.heartbeat(w.machineOf(n))
		w.detach(v.Name, n)
	}
	w.use(t, v, m.node)
	w.silent = map[string]bool{}
	w.act(t, w.view(), m.node, w.now, 100)
	maybe(t, "its client pods start again", func() {
		w.startClients(m, false)
		w.act(t, w.view(), m.node, w.now, 100)
	})
	maybe(t, "its CSIAddonsNodes have been gone for a while", func() {
		w.silent[m.node] = true
		w.pass(RefreshEvery)
		w.act(t, w.view(), m.node, w.now, 100)
	})
	w.silence(m)
	w.taint(m.node, true, false)
	w.detachAll(m.node)
}

// mustBeReadmitted: the node reboots and its taint is removed; unfencing ends, or only begins.
func (w *world) mustBeReadmitted(t *rapid.T, m *machine, begun bool) {
	w.reboot(m)
	w.silent = map[string]bool{}
	w.goWellFor(t, 3)
	w.taint(m.node, false, false)
	w.must(t, !w.nodes[m.node].taint, "the taint of %s may not go although it has rebooted", m.node)
	for rounds := 0; !w.isQuiet() && !(begun && w.present(m.node).Status.Phase == v1alpha1.NodeUnfencing); rounds++ {
		w.must(t, rounds <= 16, "%s is not unfenced", m.node)
		w.goWell(t)
	}
	w.must(t, begun || !w.blocked(m, "a") && !w.blocked(m, "b"), "%s is still fenced", m.node)
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

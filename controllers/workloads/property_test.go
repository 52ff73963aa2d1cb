package workloads

import (
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

// In any order of events, these invariants hold:
//
//	7  any crash or restart of the controller at any step resumes; nothing is done
//	   twice to a user's pod
//	8  a workload is restarted only if its mount is dead, and once
//
// At rest, the pod of every known dead mount was restarted, or has an event if a restart is forbidden.
//
// The world leaves out a case in which a live mount is taken for dead: all containers of a CSI plugin pod started a
// second time before a kubelet first reports their new sandbox, or before the controller first notes it. A mount on the
// node counts for nothing if the setting changes back before the controller could record the change.
func TestWorkloadsAreRestartedOnceAndOnlyForDeadMounts(t *testing.T) {
	must.HaveTime(t)
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, rapid.Bool().Draw(t, "old kubelets"))
		w.twoInterfaces = rapid.Bool().Draw(t, "two interfaces")
		node := func() string { return rapid.SampledFrom(w.nodes).Draw(t, "node") }
		onNode := func() *clientPod { return w.clients[node()] }
		pod := func() *slot { return rapid.SampledFrom(w.slots).Draw(t, "slot") }
		if rapid.Bool().Draw(t, "at rest before") {
			for range 2 {
				w.settle()
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { w.Step(7 * time.Millisecond) },

			"client is deleted": func(*rapid.T) {
				if c := onNode(); c != nil && c.left.IsZero() {
					c.left = w.Now()
					w.publish(c)
				}
			},
			"deleted client is removed": func(*rapid.T) {
				if c := onNode(); c != nil && !c.left.IsZero() {
					w.removeClient(c)
				}
			},
			"client is force-deleted": func(*rapid.T) { w.forceDelete(onNode()) },
			"force-deleted client stops": func(*rapid.T) {
				if len(w.zombies) > 0 {
					w.stopZombie(rapid.SampledFrom(w.zombies).Draw(t, "zombie"))
				}
			},
			"client is created":     func(*rapid.T) { w.createClient(node()) },
			"client starts":         func(*rapid.T) { w.stepClient(onNode()) },
			"client's status":       func(*rapid.T) { w.report(onNode()) },
			"Multus reports":        func(*rapid.T) { w.multus(onNode()) },
			"client's sandbox dies": func(*rapid.T) { onNode().loseSandbox() },
			"client's container crashes alone": func(*rapid.T) {
				if c := onNode(); c != nil && !c.containers[1].IsZero() {
					c.containers[1] = w.Now()
				}
			},
			"client's containers crash": func(*rapid.T) {
				if c := onNode(); c.isNoted() {
					c.containers = [2]time.Time{w.Now(), w.Now()}
					w.report(c)
				}
			},
			"client gains or loses an interface": func(*rapid.T) {
				if c := onNode(); c != nil && c.ns != nil {
					c.ns.extra = !c.ns.extra
					w.multus(c)
				}
			},

			"pod looks like a client": func(*rapid.T) {
				w.addLookAlike(rapid.SampledFrom([]string{"look-alike-1", "look-alike-2"}).Draw(t, "name"), node(), false)
			},
			"client has a twin":       func(*rapid.T) { w.addLookAlike("twin", node(), true) },
			"look-alikes are removed": func(*rapid.T) { w.removeLookAlikes() },
			"place of mounts changes and changes back": func(*rapid.T) {
				for _, inClient := range []bool{w.mountsInHost, !w.mountsInHost} {
					w.mountIn(inClient)
					w.workAll()
					w.pass(t, 1, 3000)
				}
			},
			"place of mounts changes": func(*rapid.T) { w.mountIn(rapid.Bool().Draw(t, "in the client")) },

			"pod is created": func(*rapid.T) { w.fill(pod()) },
			"pod starts":     func(*rapid.T) { w.stepWorkload(pod().pod, w.anyOf(t)) },
			"pod's status":   func(*rapid.T) { w.reportWorkload(pod().pod) },
			"pod is deleted": func(*rapid.T) { w.terminate(pod().pod) },
			"deleted pod is removed": func(*rapid.T) {
				if s := pod(); s.pod != nil && !s.pod.left.IsZero() {
					w.vacate(s)
				}
			},
			"pod's container crashes": func(*rapid.T) { pod().pod.stop() },
			"pod's sandbox dies": func(*rapid.T) {
				if p := pod().pod; p != nil {
					p.stop()
					p.sandbox = time.Time{}
				}
			},
			"pod opts out or in": func(*rapid.T) {
				s := pod()
				if s.optOut = !s.optOut; s.pod != nil {
					s.pod.optOut = s.optOut
					w.publishWorkload(s.pod)
				}
			},
			"server moves": func(t *rapid.T) {
				w.publishServer(rapid.SampledFrom([]netip.Addr{addressOne, addressTwo}).Draw(t, "address"))
			},
			"node's clock is set back, or right": func(t *rapid.T) {
				w.setClock(node(), rapid.SampledFrom([]time.Duration{0, 2 * time.Hour}).Draw(t, "behind"))
			},
			"node reboots": func(*rapid.T) {
				w.pass(t, 1, 5000)
				w.reboot(node())
			},

			"all sandboxes of a node die": func(*rapid.T) {
				w.pass(t, 1, 5000)
				w.killRuntime(node())
			},

			"setting changes": func(*rapid.T) {
				w.set(catalog.AutoDeletePod, rapid.SampledFrom([]string{"true", "true", "false", "yes"}).Draw(t, "value"))
			},
			"blacklist changes": func(*rapid.T) {
				w.set(catalog.AutoDeletePodBlacklist, rapid.SampledFrom([]string{"", "apps/ReplicaSet;apps/DaemonSet", "apps/StatefulSet"}).Draw(t, "value"))
			},
			"pod's eviction is refused or not": func(*rapid.T) {
				pod().refused = refusals[rapid.SampledFrom(append(slices.Sorted(maps.Keys(refusals)), "")).Draw(t, "answer")]
			},
			"API server fails or not": func(*rapid.T) {
				w.failing = rapid.SampledFrom([]string{"", "", "before", "after", "lost", "budget"}).Draw(t, "how")
			},

			"moment passes":                         func(*rapid.T) { w.pass(t, 1, 300) },
			"time passes":                           func(*rapid.T) { w.pass(t, 500, 6000) },
			"cache catches up in part":              func(*rapid.T) { w.deliver(rapid.IntRange(0, len(w.lag)).Draw(t, "changes")) },
			"controller works":                      func(*rapid.T) { w.workAll() },
			"controller works with a lagging cache": func(*rapid.T) { w.work() },
			"controller crashes": func(*rapid.T) {
				w.deliver(len(w.lag))
				w.crashIn = rapid.IntRange(0, 3).Draw(t, "writes from now")
				for !w.crashed && w.crashIn >= 0 && w.work() {
				}
				w.restart()
			},
			"controller restarts": func(*rapid.T) { w.restart() },

			// Chance alone seldom reaches these states.
			"client is up": func(t *rapid.T) { w.up(t, node()) },
			"client is replaced": func(t *rapid.T) {
				n := node()
				switch c := w.clients[n]; rapid.SampledFrom([]string{"deleted", "force-deleted", "sandbox"}).Draw(t, "how") {
				case "deleted":
					w.removeClient(c)
				case "force-deleted":
					w.forceDelete(c)
				case "sandbox":
					c.loseSandbox()
				}
				w.pass(t, 1, 3000)
				w.up(t, n)
			},
			"pod is up":                    func(*rapid.T) { w.replacePod(pod(), w.anyOf(t), true) },
			"pod is up without its status": func(*rapid.T) { w.replacePod(pod(), w.anyOf(t), false) },
			"all settles": func(*rapid.T) {
				for range rapid.IntRange(1, 6).Draw(t, "rounds") {
					w.settle()
				}
			},
		})
		w.checkRest()
	})
}

// anyOf chooses any of the clients that can mount.
func (w *world) anyOf(t *rapid.T) func([]*netns) *netns {
	return func(able []*netns) *netns { return able[rapid.IntRange(0, len(able)-1).Draw(t, "client")] }
}

func (w *world) pass(t *rapid.T, least, most int) {
	w.Step(time.Duration(rapid.IntRange(least, most).Draw(t, "milliseconds")) * time.Millisecond)
}

func (w *world) workAll() {
	w.deliver(len(w.lag))
	for w.work() {
	}
}

// up starts the client of a node. The reports of the kubelet and of Multus, a new pod and a look of the controller
// come in any order.
func (w *world) up(t *rapid.T, node string) {
	w.createClient(node)
	slowly := rapid.Bool().Draw(t, "slowly")
	for w.stepClient(w.clients[node]) {
		if slowly {
			w.pass(t, 1, 700)
		}
	}
	for _, step := range rapid.Permutation([]string{"report", "multus", "pass", "pod", "fairlead"}).Draw(t, "order") {
		switch step {
		case "report":
			w.report(w.clients[node])
		case "multus":
			w.multus(w.clients[node])
		case "pass":
			w.pass(t, 1, 1500)
		case "fairlead":
			w.deliver(len(w.lag))
			w.work()
		case "pod":
			w.replacePod(w.slots[rapid.IntRange(0, 2).Draw(t, "slot")], w.anyOf(t), rapid.Bool().Draw(t, "reported"))
		}
	}
}

// replacePod replaces the pod of a slot, and starts the new one.
func (w *world) replacePod(s *slot, choose func([]*netns) *netns, reported bool) {
	w.vacate(s)
	w.fill(s)
	for w.stepWorkload(s.pod, choose) {
	}
	if reported {
		w.reportWorkload(s.pod)
	}
}

// settle is two seconds in which kubelets, Multus and controllers do all that is due.
func (w *world) settle() {
	for _, c := range slices.Clone(w.zombies) {
		w.stopZombie(c)
	}
	for _, n := range w.nodes {
		if c := w.clients[n]; c != nil && !c.left.IsZero() {
			w.removeClient(c)
		}
		w.createClient(n)
		changed := false
		for w.stepClient(w.clients[n]) {
			w.Step(20 * time.Millisecond)
			changed = true
		}
		c := w.clients[n]
		unreported := changed || c.reported != c.ns
		if unreported || !w.isReportedByMultus(c) {
			w.multus(c)
		}
		if unreported {
			w.report(c)
		}
	}
	for _, s := range w.slots {
		if s.pod != nil && !s.pod.left.IsZero() {
			w.vacate(s)
		}
		w.fill(s)
		for w.stepWorkload(s.pod, newest) {
			w.Step(5 * time.Millisecond)
		}
		w.reportWorkload(s.pod)
	}
	w.Step(2 * time.Second)
	w.workAll()
}

// checkRest ends all faults and lets the controller run until it only checks dead mounts each minute.
func (w *world) checkRest() {
	begin := w.Now()
	w.removeLookAlikes()
	w.mountIn(true)
	for w.busy = w.Now(); w.Since(w.busy) < leftDead+10*time.Second; {
		w.settle()
		if w.failing != "" || slices.ContainsFunc(w.slots, func(s *slot) bool { return s.refused != nil }) {
			for _, s := range w.slots {
				s.refused = nil
			}
			w.failing, w.busy = "", w.Now()
		}
		if len(w.timers) == 0 {
			break
		}
		if next := slices.MinFunc(slices.Collect(maps.Values(w.timers)), time.Time.Compare); next.After(w.Now()) {
			w.SetTime(next)
		}
		must.True(w, w.Since(begin) <= time.Hour, "invariant 7: the controller does not come to rest")
	}
	for _, s := range w.slots {
		w.checkReported(s.pod)
	}
	for pair, n := range w.forClient {
		must.True(w, n <= 1, "invariant 8: %d restarts for one client: %s", n, pair)
	}
}

// checkReported wants the pod of a dead mount restarted if the death is certain, or an event that says why it is not.
func (w *world) checkReported(p *workloadPod) {
	s := p.slot
	if !p.left.IsZero() || !w.dead(p) || !s.inClientNetwork {
		return
	}
	if w.lostServer(p) {
		w.checkLeftBehind(p)
	}
	if !w.clockSet[s.node].IsZero() || !p.mount.gone && p.mount.client.listed {
		return // a clock that was set proves nothing
	}
	c := w.clients[s.node]
	noted := testkit.Value[rwx.NetworkNamespace](w.TB)(rwx.ParseNetworkNamespace(c.annotations[rwx.NamespaceAnnotation]))
	since := c.ready
	if noted.Since.After(since) {
		since = noted.Since // the controller saw states that the API shows no more
	}
	mounted, reasons := upperBound(p), w.Events.Reasons(p.uid)
	if s.byValue() {
		m := reads.MountingOf(w.rollout())
		inHost := m.Before == rwx.InHost && !seconds(p.began).Time.Before(m.BeforeSince) && !mounted.Add(time.Second).After(m.Since)
		must.True(w, inHost || !mounted.Before(since) || slices.Contains(reasons, "MountUnsure") || slices.Contains(reasons, "DeadMount"),
			"the mount of pod %s in a plugin pod is dead, and no event reports it: %q, record %+v", s.name, reasons, m)
		return
	}
	if mounted.Before(since) {
		value := w.setting(w.live.client, catalog.AutoDeletePod)
		blacklist := catalog.Kinds(w.setting(w.live.client, catalog.AutoDeletePodBlacklist))
		must.True(w, value != "true" && value != "" || s.owner.IsZero() || p.optOut || slices.Contains(blacklist, s.owner.GroupKind()),
			"invariant 8: the mount of pod %s, made before %s, is dead, and the pod is not restarted; client since %s", s.name, mounted, since)
		must.True(w, slices.Contains(reasons, "DeadMount"), "the mount of pod %s is dead, and no event reports it: %q", s.name, reasons)
		return
	}
	// Two namespaces that come into use in one second are one to the controller.
	first := slices.IndexFunc(c.spaces, func(ns *netns) bool { return !ns.used.Truncate(time.Second).Before(since) })
	if p.restarts > 0 && !p.before.IsZero() {
		last := p.before.Truncate(time.Second)
		must.True(w, last.Before(noted.Booted) || !last.Before(noted.Since) || slices.Contains(reasons, "MountUnsure") || slices.Contains(reasons, "DeadMount"),
			"the pod %s restarted, its mount is dead, and no event reports it: %q", s.name, reasons)
	}
	if p.restarts > 0 || !p.created.Before(c.spaces[first].began) || p.began.Truncate(time.Second).After(since) {
		return // possibly mounted again, or mounted by an earlier client
	}
	must.True(w, slices.Contains(reasons, "MountUnsure") || slices.Contains(reasons, "DeadMount"), "the mount of pod %s may be dead, and no event reports it: %q", s.name, reasons)
}

// checkLeftBehind wants the pod restarted or reported, if it had started when the server moved.
func (w *world) checkLeftBehind(p *workloadPod) {
	moves := reads.MovesOf(testkit.Get[discoveryv1.EndpointSlice](w.TB, w.live.client, objects.Longhorn.Namespace, reads.SliceName("v-shared", discoveryv1.AddressTypeIPv4)))
	if left, known := moves.Left[string(p.uid)]; known && left.Containers != "" && !slices.Contains(left.Addresses, w.server) {
		reasons := w.Events.Reasons(p.uid)
		must.True(w, slices.Contains(reasons, "DeadMount") || slices.Contains(reasons, "MountUnsure"), "the server of pod %s has moved, and no event reports it: %q", p.slot.name, reasons)
	}
}

// upperBound is the latest time at which the pod was mounted, by the API.
func upperBound(p *workloadPod) time.Time {
	bound := p.started.Truncate(time.Second)
	if made := condition(&p.status, "PodReadyToStartContainers"); made != nil && made.LastTransitionTime.Time.Before(bound) {
		bound = made.LastTransitionTime.Time
	}
	return bound
}

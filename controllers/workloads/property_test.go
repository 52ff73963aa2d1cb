package workloads

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// Whatever comes in whatever order, of the design's invariants these hold:
//
//	7  any crash or restart of the controller at any step resumes; nothing is done
//	   twice to a user's pod
//	8  a workload is restarted only if its mount is dead, and once
//
// and when all is quiet, every mount is told of that is known to be dead: its
// pod was restarted or, where that may not be, has an event.
//
// What the world does not do: all containers of a CSI plugin pod crash, one after
// the other, between two looks at it, and its addresses change as well, without a
// new sandbox; or a kubelet reports a new sandbox for the first time after all of
// its containers were started a second time. Then a mount is taken for dead that is not.
func TestWorkloadsAreRestartedOnceAndOnlyForDeadMounts(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, scheme, rapid.Bool().Draw(t, "old kubelets"))
		w.twoInterfaces = rapid.Bool().Draw(t, "two interfaces")
		node := func() string { return rapid.SampledFrom(w.nodes).Draw(t, "node") }
		pod := func() *slot { return rapid.SampledFrom(w.slots).Draw(t, "slot") }
		if rapid.Bool().Draw(t, "at rest before") {
			for range 2 {
				w.goWell()
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { w.now = w.now.Add(7 * time.Millisecond) },

			"a client is deleted": func(*rapid.T) {
				if c := w.clients[node()]; c != nil && c.left.IsZero() {
					c.left = w.now
					w.publish(c)
				}
			},
			"it is gone": func(*rapid.T) {
				if c := w.clients[node()]; c != nil && !c.left.IsZero() {
					w.unlist(c)
					w.ends(c)
				}
			},
			"a client is force-deleted": func(*rapid.T) { w.unlist(w.clients[node()]) },
			"what ran of it ends": func(*rapid.T) {
				if len(w.zombies) > 0 {
					w.ends(rapid.SampledFrom(w.zombies).Draw(t, "zombie"))
				}
			},
			"the DaemonSet makes a client": func(*rapid.T) { w.daemonSet(node()) },
			"a client starts":              func(*rapid.T) { w.stepClient(w.clients[node()]) },
			"a client's status":            func(*rapid.T) { w.report(w.clients[node()]) },
			"Multus reports":               func(*rapid.T) { w.multus(w.clients[node()]) },
			"a client's sandbox dies": func(*rapid.T) {
				if c := w.clients[node()]; c != nil {
					c.sandboxDies()
				}
			},
			"a client's container crashes alone": func(*rapid.T) {
				if c := w.clients[node()]; c != nil && !c.containers[1].IsZero() {
					c.containers[1] = w.now
				}
			},
			"a client gets another interface": func(*rapid.T) {
				if c := w.clients[node()]; c != nil && c.ns != nil {
					c.ns.extra = true
					w.multus(c)
				}
			},

			"a pod looks like a client": func(*rapid.T) {
				name := rapid.SampledFrom([]string{"look-alike-1", "look-alike-2"}).Draw(t, "name")
				if w.others[name] == nil {
					w.lookAlike(name, node(), false)
				}
			},
			"a client has a twin": func(*rapid.T) {
				if w.others["twin"] == nil {
					w.lookAlike("twin", node(), true)
				}
			},
			"look-alikes go":                   func(*rapid.T) { w.withoutLookAlikes() },
			"clients mount elsewhere from now": func(*rapid.T) { w.mountIn(rapid.Bool().Draw(t, "in the client")) },

			"a pod is made":    func(*rapid.T) { w.fill(pod()) },
			"a pod starts":     func(*rapid.T) { w.stepWorkload(pod().pod, w.anyOf(t)) },
			"a pod's status":   func(*rapid.T) { w.reportWorkload(pod().pod) },
			"a pod is deleted": func(*rapid.T) { leave(w, pod().pod) },
			"a pod is gone": func(*rapid.T) {
				if s := pod(); s.pod != nil && !s.pod.left.IsZero() {
					w.vacate(s)
				}
			},
			"a pod's container crashes": func(*rapid.T) {
				if p := pod().pod; p != nil {
					p.stops()
				}
			},
			"a pod's sandbox dies": func(*rapid.T) {
				if p := pod().pod; p != nil {
					p.stops()
					p.sandbox = time.Time{}
				}
			},
			"a pod opts out, or in": func(*rapid.T) {
				s := pod()
				if s.optOut = !s.optOut; s.pod != nil {
					s.pod.optOut = s.optOut
					w.publishWorkload(s.pod)
				}
			},
			"a node boots": func(*rapid.T) {
				w.pass(t, 1, 5000)
				w.boots(node())
			},

			"a setting changes": func(*rapid.T) {
				w.set(catalog.AutoDeletePod, rapid.SampledFrom([]string{"true", "true", "false", "yes"}).Draw(t, "value"))
			},
			"the blacklist changes": func(*rapid.T) {
				w.set(catalog.AutoDeletePodBlacklist, rapid.SampledFrom([]string{"", "apps/ReplicaSet;apps/DaemonSet", "apps/StatefulSet"}).Draw(t, "value"))
			},
			"a budget is used up, or not": func(*rapid.T) {
				s := pod()
				s.blocked = !s.blocked
			},
			"the API server fails, or not": func(*rapid.T) {
				w.failing = rapid.SampledFrom([]string{"", "", "before", "after", "budget"}).Draw(t, "how")
			},

			"a moment passes": func(*rapid.T) { w.pass(t, 1, 300) },
			"time passes":     func(*rapid.T) { w.pass(t, 500, 6000) },
			"the cache sees some of it": func(*rapid.T) {
				w.deliver(rapid.IntRange(0, len(w.log)).Draw(t, "changes"))
			},
			"fairlead": func(*rapid.T) {
				w.deliver(len(w.log))
				for w.work() {
				}
			},
			"fairlead on a stale cache": func(*rapid.T) { w.work() },
			"fairlead crashes": func(*rapid.T) {
				w.deliver(len(w.log))
				w.dies = rapid.IntRange(0, 3).Draw(t, "writes from now")
				for !w.dead && w.dies >= 0 && w.work() {
				}
				w.restart()
			},
			"fairlead restarts": func(*rapid.T) { w.restart() },
			// Without these, chance alone seldom gets to where it matters.
			"a client is up again": func(t *rapid.T) { w.up(t, node()) },
			"a client is replaced": func(t *rapid.T) {
				n := node()
				switch c := w.clients[n]; rapid.SampledFrom([]string{"deleted", "force-deleted", "sandbox"}).Draw(t, "how") {
				case "deleted":
					if w.unlist(c); c != nil {
						w.ends(c)
					}
				case "force-deleted":
					w.unlist(c)
				case "sandbox":
					if c != nil {
						c.sandboxDies()
					}
				}
				w.pass(t, 1, 3000)
				w.up(t, n)
			},
			"a pod is up": func(*rapid.T) { w.podUp(pod(), w.anyOf(t), true) },
			"a pod is up, and its kubelet has yet to say so": func(*rapid.T) { w.podUp(pod(), w.anyOf(t), false) },
			"all goes well for a while": func(*rapid.T) {
				for range rapid.IntRange(1, 6).Draw(t, "rounds") {
					w.goWell()
				}
			},
		})
		w.mustComeToRest()
	})
}

// anyOf chooses the client that mounts, where there is more than one.
func (w *world) anyOf(t *rapid.T) func([]*netns) *netns {
	return func(able []*netns) *netns { return able[rapid.IntRange(0, len(able)-1).Draw(t, "client")] }
}

func (w *world) pass(t *rapid.T, least, most int) {
	w.now = w.now.Add(time.Duration(rapid.IntRange(least, most).Draw(t, "milliseconds")) * time.Millisecond)
}

// up starts the client of a node. The kubelet and Multus tell of it in any
// order, and later or sooner; pods may come, and the controller look, before they do.
func (w *world) up(t *rapid.T, node string) {
	w.daemonSet(node)
	slowly := rapid.Bool().Draw(t, "slowly")
	for w.stepClient(w.clients[node]) {
		if slowly {
			w.pass(t, 1, 700)
		}
	}
	for _, what := range rapid.Permutation([]string{"report", "multus", "pass", "pod", "fairlead"}).Draw(t, "order") {
		switch what {
		case "report":
			w.report(w.clients[node])
		case "multus":
			w.multus(w.clients[node])
		case "pass":
			w.pass(t, 1, 1500)
		case "fairlead":
			w.deliver(len(w.log))
			w.work()
		case "pod":
			w.podUp(w.slots[rapid.IntRange(0, 2).Draw(t, "slot")], w.anyOf(t), rapid.Bool().Draw(t, "said so"))
		}
	}
}

// podUp is a user's new pod, in place of the one before.
func (w *world) podUp(s *slot, choose func([]*netns) *netns, said bool) {
	w.vacate(s)
	w.fill(s)
	for w.stepWorkload(s.pod, choose) {
	}
	if said {
		w.reportWorkload(s.pod)
	}
}

func leave(w *world, p *workloadPod) {
	if p != nil && p.left.IsZero() {
		p.left = w.now
		w.publishWorkload(p)
	}
}

// goWell is two seconds in which everybody does his part.
func (w *world) goWell() {
	newest := func(able []*netns) *netns { return able[len(able)-1] }
	for _, c := range slices.Clone(w.zombies) {
		w.ends(c)
	}
	for _, n := range w.nodes {
		if c := w.clients[n]; c != nil && !c.left.IsZero() {
			w.unlist(c)
			w.ends(c)
		}
		w.daemonSet(n)
		changed := false
		for w.stepClient(w.clients[n]) {
			w.now = w.now.Add(20 * time.Millisecond)
			changed = true
		}
		if c := w.clients[n]; changed || c.seen != c.ns {
			w.multus(c)
			w.report(c)
		} else if !strings.Contains(c.annotations[storage.NetworkStatusAnnotation], fmt.Sprintf("%012x", c.ns.mac)) {
			w.multus(c)
		}
	}
	for _, s := range w.slots {
		if s.pod != nil && !s.pod.left.IsZero() {
			w.vacate(s)
		}
		w.fill(s)
		for w.stepWorkload(s.pod, newest) {
			w.now = w.now.Add(5 * time.Millisecond)
		}
		before := s.pod.status.DeepCopy()
		if w.reportWorkload(s.pod); before.String() != s.pod.status.String() {
			w.publishWorkload(s.pod)
		}
	}
	w.now = w.now.Add(2 * time.Second)
	w.deliver(len(w.log))
	for w.work() {
	}
}

// mustComeToRest stops the world's mischief and lets the controller run until it
// asks for no more, but for a look each minute at what its owner has to decide.
func (w *world) mustComeToRest() {
	begin := w.now
	w.withoutLookAlikes()
	w.mountIn(true)
	for w.busy = w.now; w.now.Sub(w.busy) < leftDead+10*time.Second; {
		w.goWell()
		if w.failing != "" || slices.ContainsFunc(w.slots, func(s *slot) bool { return s.blocked }) {
			for _, s := range w.slots {
				s.blocked = false
			}
			w.failing, w.busy = "", w.now
		}
		if len(w.timers) == 0 {
			break
		}
		next := slices.MinFunc(slices.Collect(maps.Values(w.timers)), time.Time.Compare)
		if next.After(w.now) {
			w.now = next
		}
		if w.now.Sub(begin) > time.Hour {
			w.Fatalf("invariant 7: it does not come to rest")
		}
	}
	for _, s := range w.slots {
		if !s.byValue { // deaths of these are reported where they are known; see TestMountsByValue
			w.mustBeToldOf(s.pod)
		}
	}
	for who, n := range w.forClient {
		if n > 1 {
			w.Fatalf("invariant 8: %d restarts for one client: %s", n, who)
		}
	}
}

// mustBeToldOf wants a dead mount's pod restarted, if its death can be told, or
// an event that says why it is not.
func (w *world) mustBeToldOf(p *workloadPod) {
	s := p.slot
	if !p.left.IsZero() || !p.dead() || !s.atStake {
		return
	}
	c := w.clients[s.node]
	noted, err := storage.ParseNetworkNamespace(c.annotations[storage.NamespaceAnnotation])
	w.must(err)
	since := c.ready
	if noted.Since.After(since) {
		since = noted.Since // the controller has seen more of it than there is to be seen now
	}
	mounted, told := upperBound(p), w.events[p.uid]
	if mounted.Before(since) {
		enabled := w.values[catalog.AutoDeletePod] == "true" || w.values[catalog.AutoDeletePod] == ""
		if enabled && !s.owner.IsZero() && !p.optOut && !slices.Contains(w.blacklist(w.values), s.owner.GroupKind()) {
			w.Fatalf("invariant 8: the mount of pod %s is dead, made before %s, and it is not restarted; client since %s", s.name, mounted, since)
		}
		if !slices.Contains(told, "DeadMount") {
			w.Fatalf("the mount of pod %s is dead, and no event reports it: %q", s.name, told)
		}
		return
	}
	// Two namespaces that come into use in one second are one to the controller.
	first := slices.IndexFunc(c.spaces, func(ns *netns) bool { return !ns.used.Truncate(time.Second).Before(since) })
	if p.times > 0 || !p.created.Before(c.spaces[first].began) || p.began.Truncate(time.Second).After(since) {
		return // possibly mounted again, or mounted by an earlier client
	}
	if !slices.Contains(told, "MountUnsure") {
		w.Fatalf("the mount of pod %s may be dead, and no event reports it: %q", s.name, told)
	}
}

// upperBound is when the pod was mounted at the latest, by what the API shows.
func upperBound(p *workloadPod) time.Time {
	bound := p.started.Truncate(time.Second)
	if made := condition(&p.status, "PodReadyToStartContainers"); made != nil && made.LastTransitionTime.Time.Before(bound) {
		bound = made.LastTransitionTime.Time
	}
	return bound
}

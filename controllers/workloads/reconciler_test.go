package workloads

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage"
)

var newScheme = sync.OnceValues(cluster.NewScheme)

// atRest is a world in which every pod runs and is known to.
func atRest(t *testing.T, change ...func(*world)) *world {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, scheme, false)
	for _, c := range change {
		c(w)
	}
	for range 3 {
		w.goWell()
	}
	w.notes = nil
	return w
}

// newSandbox gives the client of a node another network namespace, and tells of it.
func (w *world) newSandbox(node string) {
	c := w.clients[node]
	c.sandboxDies()
	w.report(c)
	w.now = w.now.Add(time.Second)
	for w.stepClient(c) {
	}
	w.multus(c)
	w.report(c)
	w.now = w.now.Add(time.Second)
}

// look lets the controller do what is due now, and no more.
func (w *world) look() {
	for w.deliver(len(w.log)); w.work(); w.deliver(len(w.log)) {
	}
}

func (w *world) slot(name string) *slot {
	return w.slots[slices.IndexFunc(w.slots, func(s *slot) bool { return s.name == name })]
}

// leavers are the pods that terminate.
func (w *world) leavers() []string {
	var names []string
	for _, s := range w.slots {
		if s.pod != nil && !s.pod.left.IsZero() {
			names = append(names, s.name)
		}
	}
	return names
}

func (w *world) mustLeave(names ...string) {
	w.Helper()
	if got := w.leavers(); !slices.Equal(got, names) {
		w.Fatalf("got %q restarted, want %q", got, names)
	}
}

// stateful are slots on node-1, each of a controller of its own.
func stateful(n int) func(*world) {
	return func(w *world) {
		w.slots = nil
		for i := range n {
			name := fmt.Sprint("s", i)
			w.slots = append(w.slots, &slot{
				name: name + "-0", node: "node-1", claims: []string{"shared"}, atStake: true,
				owner: storage.Owner{APIVersion: "apps/v1", Kind: "StatefulSet", Name: name, UID: "uid-" + name},
			})
		}
	}
}

func TestEnabledSettingIsInEffectAtOnce(t *testing.T) {
	w := atRest(t, stateful(1), func(w *world) { w.set(catalog.AutoDeletePod, "false") })
	w.newSandbox("node-1")
	w.look()
	w.mustLeave()
	w.set(catalog.AutoDeletePod, "true")
	w.look()
	w.mustLeave("s0-0")
}

func TestChangedBlacklistIsInEffectAtOnce(t *testing.T) {
	w := atRest(t, stateful(1), func(w *world) { w.set(catalog.AutoDeletePodBlacklist, "apps/StatefulSet") })
	w.newSandbox("node-1")
	w.look()
	w.mustLeave()
	w.set(catalog.AutoDeletePodBlacklist, "")
	w.look()
	w.mustLeave("s0-0")
}

// On the cluster network mounts live in the node's own namespace, and there is
// nothing left to do on a node, until clients are recorded elsewhere.
func TestRecordedNetworkIsInEffectAtOnce(t *testing.T) {
	w := atRest(t, stateful(1))
	rollout := storageObjects()[0].(*v1alpha1.NetworkRollout)
	rollout.Status.Clients.Network = ""
	w.put(rollout.DeepCopy())
	w.newSandbox("node-1")
	w.look()
	w.mustLeave()
	rollout.Status.Clients.Network = network.String()
	w.put(rollout)
	w.look()
	w.mustLeave("s0-0")
}

// A pod that came after the first look was mounted by the client that is there:
// no event reports it, though it began in the same second.
func TestLaterPodIsNeverUnsure(t *testing.T) {
	w := atRest(t, stateful(2))
	w.vacate(w.slot("s1-0"))
	w.clients["node-1"].sandboxDies()
	w.report(w.clients["node-1"])
	w.now = w.now.Add(time.Second).Truncate(time.Second)
	for w.stepClient(w.clients["node-1"]) {
	}
	w.multus(w.clients["node-1"])
	w.report(w.clients["node-1"])
	w.slot("s0-0").blocked = true // so that it is looked at again
	w.look()
	w.now = w.now.Add(100 * time.Millisecond)
	w.podUp(w.slot("s1-0"), func(able []*netns) *netns { return able[0] }, true)
	w.now = w.now.Add(budgetRetry)
	w.slot("s0-0").blocked = false
	w.look()
	w.mustLeave("s0-0")
	if told := w.events[w.slot("s1-0").pod.uid]; told != nil {
		t.Fatalf("got %q", told)
	}
}

func TestNodeIsNotRestartedAllAtOnce(t *testing.T) {
	w := atRest(t, stateful(perNode+2), using(50))
	w.newSandbox("node-1")
	w.look()
	if got := len(w.leavers()); got != perNode {
		t.Fatalf("got %d restarted, want %d", got, perNode)
	}
	w.now = w.now.Add(pace)
	w.look()
	if got := len(w.leavers()); got != perNode {
		t.Fatalf("got %d restarted, want %d", got, perNode)
	}
	w.vacate(w.slot(w.leavers()[0]))
	w.now = w.now.Add(pace)
	w.look()
	if got := len(w.leavers()); got != perNode {
		t.Fatalf("one has left: got %d, want %d", got, perNode)
	}
	// A pod that takes too long to terminate is not waited for: the dead mount itself may hold it.
	w.now = w.now.Add(leavingFor)
	w.look()
	if got := len(w.leavers()); got != perNode+1 {
		t.Fatalf("got %d restarted, want all", got)
	}
}

func TestPodsOfOneControllerAreRestartedInTurn(t *testing.T) {
	w := atRest(t, stateful(2), func(w *world) {
		w.slots[1].owner = w.slots[0].owner
		w.slots[1].node = "node-2"
	})
	w.newSandbox("node-1")
	w.newSandbox("node-2")
	w.look()
	w.mustLeave("s0-0")
	w.vacate(w.slot("s0-0"))
	w.now = w.now.Add(turn - time.Millisecond)
	w.look()
	w.mustLeave()
	w.now = w.now.Add(time.Millisecond)
	w.look()
	w.mustLeave("s1-0")
	if got := w.events["uid-s0"]; len(got) != 1 {
		t.Fatalf("events on the controller: %q, want one for both pods", got)
	}
}

// spread are controllers with a pod on each of two nodes.
func spread(n int) func(*world) {
	return func(w *world) {
		stateful(2 * n)(w)
		for i, s := range w.slots[n:] {
			s.owner, s.node = w.slots[i].owner, "node-2"
		}
	}
}

// Waiting costs nothing; a pod that has waited is read once more and evicted.
func TestEvictionAfterAWaitTakesTwoRequests(t *testing.T) {
	w := atRest(t, spread(5), using(50))
	w.newSandbox("node-1")
	w.newSandbox("node-2")
	w.look()
	w.mustLeave("s0-0", "s1-0", "s2-0", "s3-0", "s4-0")
	before := w.requests
	w.now = w.now.Add(turn / 2)
	w.publish(w.clients["node-2"]) // an event of the node
	w.look()
	w.now = w.now.Add(turn / 2)
	if w.requests != before {
		t.Fatalf("waiting took %d requests", w.requests-before)
	}
	w.look()
	if got := len(w.leavers()); got != 10 || w.requests-before != 2*5 {
		t.Fatalf("%d pods are restarted, the last five with %d requests", got, w.requests-before)
	}
}

func TestWaitingPodThatChangesIsJudgedAgain(t *testing.T) {
	w := atRest(t, spread(2))
	w.newSandbox("node-1")
	w.newSandbox("node-2")
	w.look()
	w.mustLeave("s0-0", "s1-0")
	s := w.slot("s2-0")
	s.pod.optOut = true
	w.publishWorkload(s.pod)
	w.now = w.now.Add(turn)
	w.look() // mayBeEvicted fails if the pod is evicted
	w.now = w.now.Add(changedRetry)
	w.look()
	w.mustLeave("s0-0", "s1-0", "s3-0")
	if got := w.gauge("fairlead_dead_mounts", storage.ReasonLeftAlone); got != 1 {
		t.Fatalf("%v dead mounts are known to be left alone", got)
	}
}

func TestReplacedWaitingPodIsLeftAlone(t *testing.T) {
	for name, replaced := range map[string]bool{"deleted": false, "replaced": true} {
		t.Run(name, func(t *testing.T) {
			w := atRest(t, spread(1))
			w.newSandbox("node-1")
			w.newSandbox("node-2")
			w.look()
			w.mustLeave("s0-0")
			s := w.slot("s1-0")
			w.vacate(s)
			if replaced {
				w.podUp(s, func(able []*netns) *netns { return able[0] }, true)
			}
			w.now = w.now.Add(turn)
			w.look()
			w.now = w.now.Add(changedRetry)
			w.look()
			w.mustLeave("s0-0")
		})
	}
}

func TestWaitingPodsAreKeptWithoutManagedFields(t *testing.T) {
	w := atRest(t, spread(1))
	w.newSandbox("node-1")
	w.newSandbox("node-2")
	w.look()
	waiting := w.reconciler.nodes["node-2"].waiting
	if len(waiting) != 1 || waiting[0].ManagedFields != nil {
		t.Fatalf("got %d pods that wait: %+v", len(waiting), waiting)
	}
}

// A pod that its disruption budget keeps does not take the turn of the others.
func TestBlockedPodGivesItsTurnBack(t *testing.T) {
	w := atRest(t, stateful(2), func(w *world) { w.slots[1].owner = w.slots[0].owner })
	w.slot("s0-0").blocked = true
	w.newSandbox("node-1")
	w.look()
	w.mustLeave("s1-0")
}

func TestFailureOfOnePodStopsNoOther(t *testing.T) {
	w := atRest(t, stateful(3))
	w.newSandbox("node-1")
	w.slot("s0-0").blocked = true
	w.look()
	w.mustLeave("s1-0", "s2-0")
	w.slot("s0-0").blocked = false
	w.now = w.now.Add(budgetRetry - time.Second)
	w.look()
	w.mustLeave("s1-0", "s2-0")
	w.now = w.now.Add(time.Second)
	w.look()
	w.mustLeave("s0-0", "s1-0", "s2-0")
}

func TestDeadMountsAreReported(t *testing.T) {
	const dead = "volume v-shared was mounted before 2027-01-15T08:00:13Z, when the network of the CSI plugin pod on its node was recreated: its NFS mount does not answer"
	w := atRest(t, sparesReplicaSets, func(w *world) { w.slots = slices.DeleteFunc(w.slots, func(s *slot) bool { return s.byValue }) })
	w.slot("web-1").blocked = true
	w.slot("web-0").optOut, w.slot("web-0").pod.optOut = true, true
	w.publishWorkload(w.slot("web-0").pod)
	w.now = time.Unix(1_800_000_012, 0)
	w.newSandbox("node-1")
	w.look()
	w.now = w.now.Add(2 * leftDead) // each is said once
	w.look()
	slices.Sort(w.notes)
	want := []string{
		"DeadMount: " + dead + "; annotation fairlead.io/opt-out keeps Fairlead off: delete the pod yourself",
		"DeadMount: " + dead + "; apps/ReplicaSet is in blacklist-for-auto-delete-pod-when-volume-detached-unexpectedly: delete the pod yourself",
		"DeadMount: " + dead + "; its PodDisruptionBudget does not allow a restart now. A budget with unhealthyPodEvictionPolicy AlwaysAllow lets pods go that are not Ready",
		"DeadMount: " + dead + "; the pod has no controller that would recreate it: delete and create it yourself",
	}
	if !slices.Equal(w.notes, want) {
		t.Fatalf("got  %q\nwant %q", w.notes, want)
	}
	w.notes = nil
	w.slot("web-1").blocked = false
	w.now = w.now.Add(budgetRetry)
	w.look()
	if want := []string{"Remount: restarted pod web-1 on node-1: " + dead + ". Other pods of StatefulSet web follow without an event for 10m0s"}; !slices.Equal(w.notes, want) {
		t.Fatalf("got %q", w.notes)
	}
	if got := w.events["uid-web"]; !slices.Equal(got, []string{"Remount"}) {
		t.Fatalf("the controller's events: %q", got)
	}
}

// Longhorn's blacklist is empty by default.
func TestReplicaSetPodsRestartByDefault(t *testing.T) {
	w := atRest(t)
	w.newSandbox("node-1")
	w.look()
	if !slices.ContainsFunc(w.notes, func(note string) bool { return strings.HasPrefix(note, "Remount: restarted pod rs-x on node-1") }) {
		t.Fatalf("got %q", w.notes)
	}
}

func sparesReplicaSets(w *world) {
	w.set(catalog.AutoDeletePodBlacklist, "apps/ReplicaSet;apps/DaemonSet")
}

func TestRemainingDeadMountsAreCounted(t *testing.T) {
	w := atRest(t, sparesReplicaSets)
	w.newSandbox("node-1")
	w.look()
	count := func() map[string]float64 {
		registry := prometheus.NewRegistry()
		registry.MustRegister(w.reconciler.metrics)
		families, err := registry.Gather()
		w.must(err)
		counts := map[string]float64{}
		i := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == "fairlead_dead_mounts" })
		for _, m := range families[i].GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "reason" {
					counts[label.GetValue()] = m.GetGauge().GetValue()
				}
			}
		}
		return counts
	}
	want := map[string]float64{storage.ReasonNoController: 1, storage.ReasonBlacklisted: 1, storage.ReasonOff: 0, storage.ReasonLeftAlone: 0, storage.ReasonPaused: 0}
	if got := count(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	// A node that is gone counts no more.
	w.unlist(w.clients["node-1"])
	w.look()
	want[storage.ReasonNoController], want[storage.ReasonBlacklisted] = 0, 0
	if got := count(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("without the node: got %v, want %v", got, want)
	}
}

func TestRequestedRemountRestartsTheWorkload(t *testing.T) {
	w := atRest(t)
	w.now = w.now.Truncate(time.Second).Add(time.Second)
	volume := &longhorn.Volume{ObjectMeta: metav1.ObjectMeta{Namespace: longhornProfile.Namespace, Name: "v-own"}, Spec: longhorn.VolumeSpec{AccessMode: "rwo"}}
	volume.Status.State, volume.Status.CurrentNodeID = "attached", "node-1"
	before := volume.DeepCopy()
	volume.Status.RemountRequestedAt = w.now.Format(time.RFC3339)
	w.put(volume)
	w.deliver(len(w.log))
	if !remountRequested(before, volume) {
		t.Fatal("the request is no event")
	}
	for _, request := range w.reconciler.nodesOf(context.Background(), volume) {
		w.queue[request.Name] = true
	}
	if !w.queue["node-1"] {
		t.Fatalf("got %v", w.queue)
	}
	// The world has no claim about requests: its own would fail here.
	for _, s := range w.slots {
		if slices.Contains(s.claims, "own") {
			s.atStake = true
			s.pod.mount = &netns{gone: true}
		}
	}
	w.look()
	w.mustLeave() // others may be asked for in a moment
	w.now = w.now.Add(5 * time.Second)
	w.look()
	w.mustLeave("web-1", "db-0")
}

func TestNoRestartBeforeTheNetworkIsRecorded(t *testing.T) {
	w := atRest(t, stateful(1))
	rollout := &v1alpha1.NetworkRollout{ObjectMeta: metav1.ObjectMeta{Namespace: longhornProfile.Namespace, Name: longhornProfile.Name}}
	w.put(rollout)
	w.newSandbox("node-1")
	w.look()
	w.mustLeave()
	if noted := w.clients["node-1"].annotations[storage.NamespaceAnnotation]; !strings.HasPrefix(noted, "2027-01-15T08:00:00Z/") {
		t.Fatalf("a namespace is noted: %q", noted)
	}
}

// On a node without a client nothing could mount for a restarted pod.
func TestNoRestartWithoutAClient(t *testing.T) {
	w := atRest(t, stateful(1))
	c := w.clients["node-1"]
	w.unlist(c)
	w.ends(c)
	w.look()
	w.now = w.now.Add(time.Hour)
	w.look()
	w.mustLeave()
}

func TestOnlyRelevantChangesWakeTheController(t *testing.T) {
	setting := func(value string, applied bool) *longhorn.Setting {
		return &longhorn.Setting{Value: value, Status: longhorn.SettingStatus{Applied: applied}}
	}
	rollout := func(change func(*v1alpha1.NetworkRolloutStatus)) *v1alpha1.NetworkRollout {
		r := &v1alpha1.NetworkRollout{}
		change(&r.Status)
		return r
	}
	volume := func(requested, state string) *longhorn.Volume {
		return &longhorn.Volume{Status: longhorn.VolumeStatus{RemountRequestedAt: requested, State: state}}
	}
	none := func(*v1alpha1.NetworkRolloutStatus) {}
	for name, test := range map[string]struct{ got, want bool }{
		"a setting's value":     {valueChanged(setting("true", true), setting("false", true)), true},
		"a setting's status":    {valueChanged(setting("true", true), setting("true", false)), false},
		"the first record":      {recordChanged(rollout(none), rollout(func(s *v1alpha1.NetworkRolloutStatus) { s.Recorded = true })), true},
		"the clients' network":  {recordChanged(rollout(none), rollout(func(s *v1alpha1.NetworkRolloutStatus) { s.Clients.Network = "a/b@c" })), true},
		"how far a roll-out is": {recordChanged(rollout(none), rollout(func(s *v1alpha1.NetworkRolloutStatus) { s.Clients.Updated = 1 })), false},
		"a pause":               {recordChanged(rollout(none), &v1alpha1.NetworkRollout{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{storage.RestartsAnnotation: storage.RestartsPaused}}}), true},
		"where clients mount":   {recordChanged(rollout(none), rollout(func(s *v1alpha1.NetworkRolloutStatus) { s.Clients.Mounts = &v1alpha1.ClientMounts{Place: "Client"} })), true},
		"a request to remount":  {remountRequested(volume("", "attached"), volume("2026-01-01T12:00:00Z", "attached")), true},
		"a volume's state":      {remountRequested(volume("", "attached"), volume("", "detached")), false},
	} {
		if test.got != test.want {
			t.Errorf("%s: got %v", name, test.got)
		}
	}
}

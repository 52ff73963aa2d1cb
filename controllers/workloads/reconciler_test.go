package workloads

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

var newScheme = sync.OnceValues(reads.NewScheme)

// atRest is a world in which every pod runs and is reported.
func atRest(t *testing.T, changes ...func(*world)) *world {
	t.Helper()
	w := newWorld(t, false)
	for _, change := range changes {
		change(w)
	}
	for range 3 {
		w.settle()
	}
	w.Events.Clear()
	return w
}

// newSandbox gives the clients of nodes another network namespace, which is reported.
func (w *world) newSandbox(nodes ...string) {
	for _, node := range nodes {
		c := w.clients[node]
		c.loseSandbox()
		w.report(c)
		w.Step(time.Second)
		for w.stepClient(c) {
		}
		w.multus(c)
		w.report(c)
		w.Step(time.Second)
	}
}

// reconcile lets the controller handle what is due now.
func (w *world) reconcile() {
	for w.deliver(len(w.lag)); w.work(); w.deliver(len(w.lag)) {
	}
}

func (w *world) slot(name string) *slot {
	return w.slots[slices.IndexFunc(w.slots, func(s *slot) bool { return s.name == name })]
}

func (w *world) terminating() []string {
	var names []string
	for _, s := range w.slots {
		if s.pod != nil && !s.pod.left.IsZero() {
			names = append(names, s.name)
		}
	}
	return names
}

// wantRestarted reconciles, and compares the pods that terminate then.
func (w *world) wantRestarted(names ...string) {
	w.Helper()
	w.reconcile()
	got := w.terminating()
	must.True(w, slices.Equal(got, names), "restarted %q, want %q", got, names)
}

// wantCount reconciles, and compares the number of pods that terminate then.
func (w *world) wantCount(want int) {
	w.Helper()
	w.reconcile()
	got := len(w.terminating())
	must.True(w, got == want, "restarted %d pods, want %d", got, want)
}

func (w *world) wantEvents(want ...string) {
	w.Helper()
	got := w.Events.Notes()
	slices.Sort(got)
	must.True(w, slices.Equal(got, want), "got events  %q\nwant %q", got, want)
}

func (w *world) wantReasons(uid types.UID, want ...string) {
	w.Helper()
	got := w.Events.Reasons(uid)
	must.True(w, slices.Equal(got, want), "events of %s: %q, want %q", uid, got, want)
}

// wantMetric compares a metric with a reason; "" is a metric without reasons.
func (w *world) wantMetric(want float64, name, reason string) {
	w.Helper()
	registry := prometheus.NewRegistry()
	m := w.reconciler.metrics
	registry.MustRegister(m.dead, m.unattended, m.paused)
	var labels []string
	if reason != "" {
		labels = append(labels, reason)
	}
	got, found := testkit.Metric(w.TB, registry, name, labels...)
	must.True(w, found && got == want, "%s of reason %q: got %v (found: %t), want %v", name, reason, got, found, want)
}

func TestRestartsAreCountedFromZero(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := testkit.Value[*metrics](t)(newMetrics(registry))
	for _, reason := range []string{rwx.ReasonDeadMount, rwx.ReasonRemountRequested} {
		got, found := testkit.Metric(t, registry, "fairlead_workload_restarts_total", reason)
		must.True(t, found && got == 0, "%s before the first restart: %v (found: %t)", reason, got, found)
		m.restarted(reason)
		got, _ = testkit.Metric(t, registry, "fairlead_workload_restarts_total", reason)
		must.Equal(t, got, 1, reason)
	}
}

// stateful are slots on node-1, each of its own controller.
func stateful(n int) func(*world) {
	return func(w *world) {
		w.slots = nil
		for i := range n {
			w.slots = append(w.slots, newSlot(fmt.Sprintf("s%d-0", i), fmt.Sprintf("StatefulSet/s%d", i), "shared"))
		}
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

// using is a volume that so many workloads use, by Longhorn's count.
func using(workloads int) func(*world) {
	return func(w *world) {
		v := objects.LonghornVolume("v-shared", "node-1", objects.RWX)
		for i := range workloads {
			v.Status.KubernetesStatus.WorkloadsStatus = append(v.Status.KubernetesStatus.WorkloadsStatus, longhorn.WorkloadStatus{PodName: fmt.Sprint(i)})
		}
		w.put(v)
	}
}

func setting(name catalog.Name, value string) func(*world) {
	return func(w *world) { w.set(name, value) }
}

var sparesReplicaSets = setting(catalog.AutoDeletePodBlacklist, "apps/ReplicaSet;apps/DaemonSet")

// onCluster records clients on the cluster network: mounts are in the namespace of the node.
func onCluster(w *world) { w.recordClients("") }

func TestChangeOfPolicyIsInEffectAtOnce(t *testing.T) {
	for name, c := range map[string]struct{ before, after func(*world) }{
		"setting":   {setting(catalog.AutoDeletePod, "false"), setting(catalog.AutoDeletePod, "true")},
		"blacklist": {setting(catalog.AutoDeletePodBlacklist, "apps/StatefulSet"), setting(catalog.AutoDeletePodBlacklist, "")},
		"network":   {onCluster, func(w *world) { w.recordClients(network.String()) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := atRest(t, stateful(1))
			c.before(w)
			w.newSandbox("node-1")
			w.wantRestarted()
			c.after(w)
			w.wantRestarted("s0-0")
		})
	}
}

// Longhorn reads its switches by strconv.ParseBool.
func TestSettingIsReadAsLonghornDoes(t *testing.T) {
	for value, restarted := range map[string][]string{
		"true": {"s0-0"}, "True": {"s0-0"}, "TRUE": {"s0-0"}, "1": {"s0-0"}, "t": {"s0-0"},
		"false": nil, "F": nil, "0": nil, "yes": nil, "": nil,
	} {
		t.Run(value, func(t *testing.T) {
			w := atRest(t, stateful(1))
			w.put(objects.LonghornSetting(catalog.AutoDeletePod, value))
			w.newSandbox("node-1")
			w.wantRestarted(restarted...)
		})
	}
}

// The clock of a node is set back, and another leader looks at pods that the present client has mounted.
func TestClockThatIsSetBackRestartsNoPod(t *testing.T) {
	w := atRest(t, stateful(2))
	w.Step(time.Second)
	w.setClock("node-1", time.Hour)
	w.replacePod(w.slot("s0-0"), newest, true)
	w.restart()
	w.wantRestarted() // checkEviction fails if the pod is evicted
	w.wantReasons(w.slot("s0-0").pod.uid)
}

// The clock is set back after a pod was mounted, and before its client gets another sandbox: no time shows that the mount is dead.
func TestClockThatIsSetBackBeforeTheClientStartsLeavesMountsUnsure(t *testing.T) {
	w := atRest(t, stateful(1))
	w.setClock("node-1", time.Hour)
	w.removeClient(w.clients["node-1"])
	w.settle()
	w.wantRestarted()
	w.wantReasons(w.slot("s0-0").pod.uid, "MountUnsure")
}

func TestNodeIsNotRestartedAllAtOnce(t *testing.T) {
	w := atRest(t, stateful(perNode+2), using(50))
	w.newSandbox("node-1")
	w.wantCount(perNode)
	w.Step(pace)
	w.wantCount(perNode)
	w.vacate(w.slot(w.terminating()[0]))
	w.Step(pace)
	w.wantCount(perNode)
	w.Step(leavingFor) // the dead mount itself may block a pod
	w.wantCount(perNode + 1)
}

func TestPodsOfOneControllerAreRestartedInTurn(t *testing.T) {
	w := atRest(t, spread(1))
	w.newSandbox("node-1", "node-2")
	w.wantRestarted("s0-0")
	w.vacate(w.slot("s0-0"))
	w.Step(turn - time.Millisecond)
	w.wantRestarted()
	w.Step(time.Millisecond)
	w.wantRestarted("s1-0")
	w.wantReasons("uid-s0", "Remount") // one event for both pods
}

func TestEvictionAfterAWaitTakesTwoRequests(t *testing.T) {
	w := atRest(t, spread(5), using(50))
	w.newSandbox("node-1", "node-2")
	w.wantRestarted("s0-0", "s1-0", "s2-0", "s3-0", "s4-0")
	for _, s := range w.reconciler.nodes["node-2"].waiting {
		must.Check(t, s.ManagedFields == nil, "a waiting pod is kept with its managed fields")
	}
	before := w.requestCount()
	w.Step(turn / 2)
	w.publish(w.clients["node-2"]) // an event of the node
	w.reconcile()
	w.Step(turn / 2)
	if got := w.requestCount(); got != before {
		t.Fatalf("waiting took %d requests", got-before)
	}
	w.wantCount(10)
	if got := w.requestCount() - before; got != 2*5 {
		t.Fatalf("five evictions took %d requests", got)
	}
}

// requestCount includes events.
func (w *world) requestCount() int { return w.requests + len(w.Events.All()) }

func TestChangedWaitingPodIsLeftAlone(t *testing.T) {
	for name, change := range map[string]func(*world, *slot){
		"deleted":  func(w *world, s *slot) { w.vacate(s) },
		"replaced": func(w *world, s *slot) { w.replacePod(s, newest, true) },
		"opts out": func(w *world, s *slot) {
			s.pod.optOut = true
			w.publishWorkload(s.pod)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := atRest(t, spread(2))
			w.newSandbox("node-1", "node-2")
			w.wantRestarted("s0-0", "s1-0")
			change(w, w.slot("s2-0"))
			w.Step(turn)
			w.reconcile() // checkEviction fails if the pod is evicted
			w.Step(changedRetry)
			w.wantRestarted("s0-0", "s1-0", "s3-0")
			if name == "opts out" {
				w.wantMetric(1, "fairlead_dead_mounts", rwx.ReasonLeftAlone)
			}
		})
	}
}

func TestBlockedPodReleasesItsTurn(t *testing.T) {
	w := atRest(t, stateful(2), func(w *world) { w.slots[1].owner = w.slots[0].owner })
	w.slot("s0-0").refused = refusals["budget"]
	w.newSandbox("node-1")
	w.wantRestarted("s1-0")
}

func TestFailureOfOnePodStopsNoOther(t *testing.T) {
	w := atRest(t, stateful(3))
	w.newSandbox("node-1")
	w.slot("s0-0").refused = refusals["budget"]
	w.wantRestarted("s1-0", "s2-0")
	w.slot("s0-0").refused = nil
	w.Step(budgetRetry - time.Second)
	w.wantRestarted("s1-0", "s2-0")
	w.Step(time.Second)
	w.wantRestarted("s0-0", "s1-0", "s2-0")
}

func TestDeadMountsAreReported(t *testing.T) {
	const dead = "volume v-shared was mounted before 2027-01-15T08:00:13Z, when the network of the CSI plugin pod on its node was recreated: its NFS mount does not answer"
	w := atRest(t, sparesReplicaSets, func(w *world) { w.slots = slices.DeleteFunc(w.slots, (*slot).byValue) })
	w.slot("web-1").refused = refusals["budget"]
	w.slot("web-0").optOut, w.slot("web-0").pod.optOut = true, true
	w.publishWorkload(w.slot("web-0").pod)
	w.SetTime(time.Unix(1_800_000_012, 0))
	w.newSandbox("node-1")
	w.reconcile()
	w.wantMetric(1, "fairlead_dead_mounts", rwx.ReasonNoController)
	w.wantMetric(1, "fairlead_dead_mounts", rwx.ReasonBlacklisted)
	w.wantMetric(1, "fairlead_dead_mounts", rwx.ReasonLeftAlone)
	w.wantMetric(0, "fairlead_dead_mounts", rwx.ReasonOff)
	w.wantMetric(0, "fairlead_dead_mounts", rwx.ReasonPaused)
	w.wantMetric(1, "fairlead_dead_mounts", rwx.ReasonBudget)
	recorded := w.rollout().Status.DeadMounts
	must.Equal(t, len(recorded), 4, "%v", recorded)
	must.Equal(t, recorded[0].Node+" "+strings.Join(recorded[0].Volumes, " ")+" "+recorded[0].Message[:len(dead)], "node-1 v-shared "+dead)
	w.Step(2 * leftDead)
	w.reconcile() // repeats no event
	w.wantEvents(
		"Warning DeadMount: "+dead+"; annotation fairlead.io/opt-out keeps Fairlead off: delete the pod yourself",
		"Warning DeadMount: "+dead+"; apps/ReplicaSet is in blacklist-for-auto-delete-pod-when-volume-detached-unexpectedly: delete the pod yourself",
		"Warning DeadMount: "+dead+"; its PodDisruptionBudget does not allow a restart now. A budget with unhealthyPodEvictionPolicy AlwaysAllow permits the eviction of pods that are not Ready",
		"Warning DeadMount: "+dead+"; the pod has no controller that would recreate it: delete and create it yourself",
	)
	w.Events.Clear()
	w.slot("web-1").refused = nil
	w.Step(budgetRetry)
	w.reconcile()
	w.wantEvents("Warning Remount: restarted pod web-1 on node-1: " + dead + ". Other pods of StatefulSet web follow without an event for 10m0s")
	w.wantReasons("uid-web", "Remount")
	w.removeClient(w.clients["node-1"])
	w.reconcile()
	w.wantMetric(0, "fairlead_dead_mounts", rwx.ReasonBudget) // of all reasons: the node is gone
}

func TestRequestedRemountRestartsTheWorkload(t *testing.T) {
	w := atRest(t)
	w.SetTime(w.Now().Truncate(time.Second).Add(time.Second))
	volume := objects.LonghornVolume("v-own", "node-1")
	before := volume.DeepCopy()
	volume.Status.RemountRequestedAt = w.Now().Format(time.RFC3339)
	w.put(volume)
	w.deliver(len(w.lag))
	must.True(t, remountRequested(before, volume), "the request is no event")
	for _, request := range w.reconciler.nodesOf(context.Background(), volume) {
		w.queue[request.Name] = true
	}
	must.True(t, w.queue["node-1"], "got %v", w.queue)
	for _, s := range w.slots {
		if slices.Contains(s.claims, "own") { // checkEviction knows no requests
			s.inClientNetwork = true
			s.pod.mount = &netns{gone: true}
		}
	}
	w.wantRestarted() // other requests may follow in a moment
	w.Step(5 * time.Second)
	w.wantRestarted("web-1", "db-0")
}

func TestNoRestartBeforeTheNetworkIsRecorded(t *testing.T) {
	w := atRest(t, stateful(1))
	w.put(&v1alpha1.NetworkRollout{ObjectMeta: objects.Here(longhorn.Name)})
	w.newSandbox("node-1")
	w.wantRestarted()
	noted := w.clients["node-1"].annotations[rwx.NamespaceAnnotation]
	must.True(t, strings.Contains(noted, `"since":"2027-01-15T08:00:00Z"`), "a namespace is noted: %q", noted)
}

func TestOnlyRelevantChangesWakeTheController(t *testing.T) {
	value := func(before, after longhorn.Setting) bool { return valueChanged(&before, &after) }
	record := func(after v1alpha1.NetworkRolloutStatus) bool {
		return recordChanged(&v1alpha1.NetworkRollout{}, &v1alpha1.NetworkRollout{Status: after})
	}
	volume := func(after longhorn.VolumeStatus) bool {
		return remountRequested(&longhorn.Volume{Status: longhorn.VolumeStatus{State: "attached"}}, &longhorn.Volume{Status: after})
	}
	left := rwx.Moves{Left: map[string]rwx.LeftBehind{"uid": {}}, Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")}}
	slice := func(address string, moves rwx.Moves) *discoveryv1.EndpointSlice {
		s := &discoveryv1.EndpointSlice{Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}}}}
		s.Annotations = map[string]string{rwx.MovesAnnotation: moves.String()}
		return s
	}
	paused := &v1alpha1.NetworkRollout{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{rwx.RestartsAnnotation: rwx.RestartsPaused}}}
	for name, test := range map[string]struct{ got, want bool }{
		"setting's value":     {value(longhorn.Setting{Value: "true"}, longhorn.Setting{Value: "false"}), true},
		"setting's status":    {value(longhorn.Setting{}, longhorn.Setting{Status: longhorn.SettingStatus{Applied: true}}), false},
		"first record":        {record(v1alpha1.NetworkRolloutStatus{Recorded: true}), true},
		"clients' network":    {record(v1alpha1.NetworkRolloutStatus{Clients: v1alpha1.ClientsRollout{Network: "a/b@c"}}), true},
		"progress":            {record(v1alpha1.NetworkRolloutStatus{Clients: v1alpha1.ClientsRollout{Updated: 1}}), false},
		"pause":               {recordChanged(&v1alpha1.NetworkRollout{}, paused), true},
		"where clients mount": {record(v1alpha1.NetworkRolloutStatus{Clients: v1alpha1.ClientsRollout{Mounts: &v1alpha1.ClientMounts{Place: "Client"}}}), true},
		"request to remount":  {volume(longhorn.VolumeStatus{State: "attached", RemountRequestedAt: "2026-01-01T12:00:00Z"}), true},
		"volume's state":      {volume(longhorn.VolumeStatus{State: "detached"}), false},
		"server moves":        {serverMoved(slice("10.0.0.1", rwx.Moves{}), slice("10.0.0.2", left)), true},
		"server moves back":   {serverMoved(slice("10.0.0.2", left), slice("10.0.0.1", left)), true},
		"server restarts":     {serverMoved(slice("10.0.0.1", rwx.Moves{}), slice("10.0.0.1", rwx.Moves{})), false},
	} {
		must.Equal(t, test.got, test.want, "%s", name)
	}
}

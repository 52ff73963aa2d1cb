package tainting

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/fence/taint"
	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

func TestLostNodeIsTainted(t *testing.T) {
	f, others := newFixture(t), corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}
	f.node("node-1", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{others} })
	f.lostLongAgo("node-1")
	before := f.record("node-1", nil)
	f.reconcile().mustWait(settle)
	taints := f.node("node-1", nil).Spec.Taints
	must.True(t, len(taints) == 2 && taints[0] == others, "the taints are %+v", taints)
	if own := taints[1]; own.Key != "node.kubernetes.io/out-of-service" || own.Value != "fairlead" || own.Effect != corev1.TaintEffectNoExecute || own.TimeAdded == nil {
		t.Errorf("the taint is %+v", own)
	}
	f.mustReport("OutOfService", "Node/node-1", "pv-node-1").mustReport("OutOfService", "NodeFence/node-1", "pv-node-1")
	f.mustCount(1, taintsTotal, resultTainted)
	is := f.record("node-1", nil)
	must.True(t, is.ResourceVersion == before.ResourceVersion, "the record was written")
	f.reconcile() // with a stale cache
	f.sync().reconcile().mustTaint("node-1").mustHaveEvents(2).mustCount(0, taintsTotal, resultConflict)
}

func TestNothingIsReadLiveWithoutNeed(t *testing.T) {
	f := newFixture(t).reconcile().mustWait(0).lose("node-1", 4*time.Minute+50*time.Second).reconcile().mustWait(10 * time.Second)
	f.lostLongAgo("node-1").record("node-1", func(s *v1alpha1.NodeFenceSpec) { s.Volumes = nil })
	f.sync().reconcile().mustWait(30 * time.Second).mustHaveEvents(0).mustTaint()
	must.True(t, len(f.reads) == 0, "read %q", f.reads)
}

func onNode1(change func(*corev1.Node)) func(*fixture) {
	return func(f *fixture) { f.node("node-1", change) }
}

func TestTaintIsDecidedOnALiveRead(t *testing.T) {
	for name, change := range map[string]func(*fixture){
		"the node is Ready":       func(f *fixture) { f.ready("node-1", corev1.ConditionTrue, noon) },
		"the kubelet is back":     func(f *fixture) { f.beat("node-1", noon) },
		"all leases are old":      func(f *fixture) { f.Pass(2 * time.Minute) },
		"another node is tainted": func(f *fixture) { f.node("node-2", taintOwn) },
		"an operator tainted it":  onNode1(func(n *corev1.Node) { taintOwn(n); n.Spec.Taints[0].Value = "" }),
		"the node is cordoned":    onNode1(func(n *corev1.Node) { n.Spec.Unschedulable = true }),
		"the node holds nothing":  func(f *fixture) { f.record("node-1", func(s *v1alpha1.NodeFenceSpec) { s.Volumes = nil }) },
		"the node opts out":       onNode1(func(n *corev1.Node) { n.Annotations = map[string]string{taint.NoTaintAnnotation: "true"} }),
		"the node uses an unfenced volume": onNode1(func(n *corev1.Node) {
			n.Status.VolumesInUse = []corev1.UniqueVolumeName{"kubernetes.io/csi/" + cephDriver + "^a", "kubernetes.io/csi/other^a"}
		}),
		"an unfenced volume is attached": onNode1(func(n *corev1.Node) {
			n.Status.VolumesAttached = []corev1.AttachedVolume{{Name: "kubernetes.io/iscsi/a"}}
		}),
		"another node has the address": func(f *fixture) {
			f.node("node-2", func(n *corev1.Node) {
				n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "node-2"}, {Type: corev1.NodeInternalIP, Address: "::ffff:10.0.0.1"}}
			})
		},
		"the node has rebooted": onNode1(func(n *corev1.Node) { n.Status.NodeInfo.BootID = "another" }),
		"the node is gone":      func(f *fixture) { f.Must(f.Delete(f.Context(), f.node("node-1", nil))) },
		"tainting is paused":    func(f *fixture) { f.pause("false") },
		"reading takes long":    func(f *fixture) { f.slow = 20 * time.Second; f.beat("node-0", noon.Add(80*time.Second)) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t).lostLongAgo("node-1")
			change(f)
			before := f.tainted()
			f.reconcile()
			must.True(t, len(f.reads) != 0, "nothing was read live")
			f.mustTaint(before...)
		})
	}
}

func taintOwn(n *corev1.Node) {
	n.Spec.Taints = []corev1.Taint{{Key: fence.OutOfServiceTaint, Value: fence.OwnTaintValue, Effect: corev1.TaintEffectNoExecute}}
}

func (f *fixture) pause(value string) *fixture {
	f.Helper()
	f.Must(f.Create(f.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fairlead-system", Name: "fairlead-switches"}, Data: map[string]string{"AUTOMATIC_TAINTING": value},
	}))
	return f
}

func TestSwitchThatIsOnDoesNotPause(t *testing.T) {
	newFixture(t).lostLongAgo("node-1").pause("true").reconcile().mustTaint("node-1")
}

func TestNothingIsTaintedWithoutAllFacts(t *testing.T) {
	for _, kind := range []string{"NodeList", "NodeFenceList", "LeaseList", "ConfigMap"} {
		f := newFixture(t).lostLongAgo("node-1")
		f.failing = kind
		f.fails().mustTaint()
		f.failing = ""
		f.pass(pace).reconcile().mustTaint("node-1")
	}
}

func TestChangedNodeIsNotTainted(t *testing.T) {
	f := newFixture(t).lostLongAgo("node-1")
	f.Client.Before = func(fakeapi.Write) error {
		f.ready("node-1", corev1.ConditionTrue, noon)
		return nil
	}
	f.reconcile().mustTaint().mustCount(1, taintsTotal, resultConflict).mustCount(0, taintsTotal, resultTainted).mustHaveEvents(0)
}

func TestNodesAreTaintedOneAtATime(t *testing.T) {
	f := newFixture(t)
	f.r.Tainting.MaxNodes = 2
	f.lostLongAgo("node-1").lose("node-2", 20*time.Minute).lose("node-3", 15*time.Minute).reconcile()
	f.mustTaint("node-2").reconcile().mustTaint("node-2", "node-3").reconcile().pass(time.Minute)
	f.beat("node-0", f.Clock.Now()).sync().reconcile().mustTaint("node-2", "node-3")
	f.mustReport("NotTainted", "Node/node-1", "2 nodes are tainted")
}

func TestDryRunReportsOncePerIncident(t *testing.T) {
	f := newFixture(t)
	f.r.Tainting.Mode = taint.DryRun
	f.lostLongAgo("node-1")
	for range 3 {
		f.reconcile().pass(time.Minute)
		f.beat("node-0", f.Clock.Now())
	}
	f.mustTaint().mustReport("WouldTaint", "Node/node-1", "would taint it now")
	f.mustReport("WouldTaint", "NodeFence/node-1", "pv-node-1").mustHaveEvents(2).mustCount(1, "fairlead_would_taint_nodes")
	f.ready("node-1", corev1.ConditionTrue, f.Clock.Now()).sync().reconcile()
	f.mustCount(0, "fairlead_would_taint_nodes")
	must.True(t, f.r.reported.Len() == 0, "%d reasons are remembered", f.r.reported.Len())
	f.lostLongAgo("node-1").reconcile().record("node-1", func(s *v1alpha1.NodeFenceSpec) { s.LostSince = ptr.To(metav1.NewTime(s.LostSince.Add(time.Second))) })
	f.reconcileLater().mustHaveEvents(6)
}

// The controller itself remembers a taint until the fencing controller records it.
func TestRemovedTaintIsNotWrittenAgain(t *testing.T) {
	f := newFixture(t).lostLongAgo("node-1").reconcile().mustTaint("node-1")
	f.node("node-1", func(n *corev1.Node) { n.Spec.Taints = nil })
	f.sync().reconcile().mustTaint().mustReport("NotTainted", "NodeFence/node-1", "the taint was removed")
	f.record("node-1", func(s *v1alpha1.NodeFenceSpec) { s.Tainted = ptr.To(metav1.NewTime(f.Clock.Now())) })
	f.r.given = map[string]string{}
	f.reconcileLater().mustTaint()
}

func TestUntaintedNodeIsReportedOnce(t *testing.T) {
	f := newFixture(t)
	f.r.Tainting.MaxShare = 1
	f.lostLongAgo("node-1").reconcile().pass(time.Minute).reconcile()
	f.mustReport("NotTainted", "Node/node-1", "ZoneShare").mustReport("NotTainted", "NodeFence/node-1", "more than 1 %")
	f.mustHaveEvents(2).mustCount(1, "fairlead_not_tainted_nodes", taint.ReasonZoneShare)
}

func TestNodeThatCannotBeFencedMakesRoomForTheNext(t *testing.T) {
	f := newFixture(t).lose("node-1", 20*time.Minute).lostLongAgo("node-2")
	var asked []string
	f.r.Facts = func(_ context.Context, node string) (fence.Facts, error) {
		asked = append(asked, node)
		return fence.Facts{Node: fence.Node{Name: node}, Spec: f.record(node, nil).Spec, Policy: f.r.Policy, NoCSIAddons: node == "node-1"}, nil
	}
	f.reconcile().mustTaint("node-2").mustReport("NotTainted", "Node/node-1", "csi-addons")
	must.True(t, slices.Equal(asked, []string{"node-1", "node-2"}), "asked for %q", asked)
	f = newFixture(t).lostLongAgo("node-1")
	f.r.Facts = func(context.Context, string) (fence.Facts, error) { return fence.Facts{}, errors.New("no answer") }
	f.fails().mustTaint()
}

func TestTaintingUsesTheFactsOfFencing(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*fixture)
		want   string
	}{
		"nothing prevents the fence": {func(*fixture) {}, ""},
		"a server has the address": {func(f *fixture) {
			pod := objects.Pod("rook-ceph", "mon-a", "node-4")
			pod.Labels, pod.Status.PodIPs = map[string]string{"app": "rook-ceph-mon"}, []corev1.PodIP{{IP: "10.0.0.1"}}
			f.Must(f.Create(f.Context(), pod))
		}, fence.ReasonAddressInUse},
		"another NetworkFence unfences": {func(f *fixture) {
			left := &csiaddons.NetworkFence{ObjectMeta: metav1.ObjectMeta{Name: "left"}}
			left.Spec.FenceState, left.Spec.CIDRs = csiaddons.Unfenced, []string{"10.0.0.1/32"}
			f.Must(f.Create(f.Context(), left))
		}, fence.ReasonLeftoverUnfenced},
		"csi-addons is not installed": {func(f *fixture) { f.missing = "NetworkFenceList" }, fence.ReasonNoCSIAddons},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t).lostLongAgo("node-1")
			c.change(f)
			held, err := fencingreads.ListedHoldings(t.Context(), f.API, cephFencing.Protects)
			must.Do(t, err)
			f.r.Facts = fencingreads.NewFenceReader(cephFencing, f.r.Live, f.r.Live, nil, held).FenceFacts(f.Clock, nil)
			f.reconcile()
			if c.want == "" {
				f.mustTaint("node-1")
				return
			}
			f.mustTaint().mustReport("NotTainted", "Node/node-1", "("+c.want+")")
		})
	}
}

// The cache keeps creation times: new nodes must not seem to return from a storm.
func TestNewNodesAreNoStorm(t *testing.T) {
	f := newFixture(t)
	f.r.Tainting.StormNodes = 2
	f.lose("node-1", 6*time.Minute)
	for _, name := range []string{"new-1", "new-2", "new-3"} {
		node := objects.Node(name, objects.Readiness(corev1.ConditionTrue, noon.Add(-time.Minute)))
		node.CreationTimestamp = metav1.NewTime(noon.Add(-2 * time.Minute))
		f.Must(f.Create(f.Context(), node))
	}
	f.sync().reconcile().mustTaint("node-1")
}

func TestLiveReadsArePaced(t *testing.T) {
	f := newFixture(t).lostLongAgo("node-1").beat("node-1", noon)
	for range 20 {
		f.reconcile().pass(time.Second)
	}
	n := len(slices.DeleteFunc(f.reads, func(kind string) bool { return kind != "NodeList" }))
	must.True(t, n == 2, "nodes were read %d times in 20 s", n)
}

func TestOnlyRelevantChangesWakeTheController(t *testing.T) {
	f := newFixture(t)
	node, record := f.node("node-1", nil), f.record("node-1", nil)
	silent := func(n *corev1.Node) { n.Status.Conditions[1].Status = corev1.ConditionUnknown }
	unready := func(n *corev1.Node) { n.Status.Conditions[1].Status = corev1.ConditionFalse }
	for name, c := range map[string]struct {
		change func(*corev1.Node)
		want   bool
	}{
		"heartbeat":   {func(n *corev1.Node) { n.Status.Conditions[1].LastHeartbeatTime = metav1.NewTime(noon) }, false},
		"allocatable": {func(n *corev1.Node) { n.Status.Allocatable = corev1.ResourceList{} }, false},
		"not Ready":   {unready, true},
		"silent":      {silent, true},
		"cordoned":    {func(n *corev1.Node) { n.Spec.Unschedulable = true }, true},
		"tainted":     {taintOwn, true},
		"labelled":    {func(n *corev1.Node) { n.Labels = map[string]string{zoneLabel: "b"} }, true},
	} {
		got := nodeChanged(node, objects.With(node.DeepCopy(), c.change))
		must.True(t, got == c.want, "%s: %t", name, got)
	}
	if !nodeChanged(objects.With(node.DeepCopy(), unready), objects.With(node.DeepCopy(), silent)) {
		t.Error("an unready kubelet that falls silent is no change")
	}
	for name, c := range map[string]struct {
		change func(*v1alpha1.NodeFenceSpec)
		want   bool
	}{
		"seen":  {func(s *v1alpha1.NodeFenceSpec) { s.LastSeen = ptr.To(metav1.NewTime(noon)) }, false},
		"lost":  {func(s *v1alpha1.NodeFenceSpec) { s.LostSince = ptr.To(metav1.NewTime(noon)) }, true},
		"holds": {func(s *v1alpha1.NodeFenceSpec) { s.Volumes = []v1alpha1.HeldVolume{{}} }, true},
	} {
		after := record.DeepCopy()
		c.change(&after.Spec)
		got := recordChanged(record, after)
		must.True(t, got == c.want, "%s: %t", name, got)
	}
}

func TestModeOffSetsNothingUp(t *testing.T) {
	if err := (&Reconciler{}).SetupWithManager(nil); err != nil {
		t.Error(err)
	}
	err := (&Reconciler{Tainting: taint.Rules{Mode: "dry-run"}}).SetupWithManager(nil)
	must.True(t, err != nil, "an invalid mode passes")
}

// Autoscaled nodes never get a name twice.
func TestDeletedNodeIsForgotten(t *testing.T) {
	f := newFixture(t).lostLongAgo("node-1").reconcile()
	mustRemember := func(want int) {
		t.Helper()
		f.sync().pass(time.Minute).reconcile()
		must.True(t, len(f.r.given) == want, "remembered are %v", f.r.given)
	}
	mustRemember(1)
	f.mustTaint("node-1").Must(f.Delete(t.Context(), f.node("node-1", nil)))
	mustRemember(0)
}

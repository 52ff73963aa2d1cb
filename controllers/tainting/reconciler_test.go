package tainting

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/csiaddons"
	"github.com/fairlead-io/fairlead/internal/cluster/fencing"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/fence/taint"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
)

func TestLostNodeIsTainted(t *testing.T) {
	f := newFixture(t)
	f.node("node-1", func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}}
	})
	f.lose("node-1", 10*time.Minute)
	before := f.record("node-1", nil)
	if after := f.reconcile(); after != settle {
		t.Errorf("looks again after %s", after)
	}
	taints := f.node("node-1", nil).Spec.Taints
	if len(taints) != 2 || taints[0].Key != corev1.TaintNodeUnreachable {
		t.Fatalf("the taints are %+v", taints)
	}
	if own := taints[1]; own.Key != "node.kubernetes.io/out-of-service" || own.Value != "fairlead" || own.Effect != corev1.TaintEffectNoExecute || own.TimeAdded == nil {
		t.Errorf("the taint is %+v", own)
	}
	f.mustReport("OutOfService", "Node/node-1", "pv-node-1")
	f.mustReport("OutOfService", "NodeFence/node-1", "pv-node-1")
	f.mustCount(1, taintsTotal, resultTainted)
	if is := f.record("node-1", nil); is.ResourceVersion != before.ResourceVersion {
		t.Error("the record was written")
	}
	f.reconcile() // with a stale cache
	f.sync()
	f.reconcile()
	f.mustTaint("node-1")
	f.mustHaveEvents(2)
	f.mustCount(0, taintsTotal, resultConflict)
}

func TestNothingIsReadLiveWithoutNeed(t *testing.T) {
	f := newFixture(t)
	mustWait := func(want time.Duration) {
		t.Helper()
		if after := f.reconcile(); after != want || len(f.reads) > 0 {
			t.Errorf("looks again after %s, want %s; read %q", after, want, f.reads)
		}
	}
	mustWait(0)
	f.lose("node-1", 4*time.Minute+50*time.Second)
	mustWait(10 * time.Second)
	f.lose("node-1", 10*time.Minute)
	f.record("node-1", func(s *v1alpha1.NodeFenceStatus) { s.Volumes = nil })
	f.sync()
	mustWait(30 * time.Second)
	f.mustHaveEvents(0)
	f.mustTaint()
}

func TestTaintIsDecidedOnALiveRead(t *testing.T) {
	for name, change := range map[string]func(*fixture){
		"the node is Ready":       func(f *fixture) { f.ready("node-1", corev1.ConditionTrue, noon) },
		"the kubelet is back":     func(f *fixture) { f.beat("node-1", noon) },
		"all leases are old":      func(f *fixture) { f.Pass(2 * time.Minute) },
		"another node is tainted": func(f *fixture) { f.node("node-2", taintOwn) },
		"an operator tainted it":  func(f *fixture) { f.node("node-1", func(n *corev1.Node) { taintOwn(n); n.Spec.Taints[0].Value = "" }) },
		"the node is cordoned":    func(f *fixture) { f.node("node-1", func(n *corev1.Node) { n.Spec.Unschedulable = true }) },
		"the node holds nothing": func(f *fixture) {
			f.record("node-1", func(s *v1alpha1.NodeFenceStatus) { s.Volumes = nil })
		},
		"the node opts out": func(f *fixture) {
			f.node("node-1", func(n *corev1.Node) { n.Annotations = map[string]string{taint.NoTaintAnnotation: "true"} })
		},
		"the node uses an unfenced volume": func(f *fixture) {
			f.node("node-1", func(n *corev1.Node) {
				n.Status.VolumesInUse = []corev1.UniqueVolumeName{"kubernetes.io/csi/" + cephDriver + "^a", "kubernetes.io/csi/other^a"}
			})
		},
		"an unfenced volume is attached": func(f *fixture) {
			f.node("node-1", func(n *corev1.Node) {
				n.Status.VolumesAttached = []corev1.AttachedVolume{{Name: "kubernetes.io/iscsi/a"}}
			})
		},
		"another node has the address": func(f *fixture) {
			f.node("node-2", func(n *corev1.Node) {
				n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "node-2"}, {Type: corev1.NodeInternalIP, Address: "::ffff:10.0.0.1"}}
			})
		},
		"the node has rebooted": func(f *fixture) { f.node("node-1", func(n *corev1.Node) { n.Status.NodeInfo.BootID = "another" }) },
		"the node is gone":      func(f *fixture) { f.Must(f.Delete(f.Context(), f.node("node-1", nil))) },
		"tainting is paused":    func(f *fixture) { f.pause("false") },
		"reading takes long":    func(f *fixture) { f.slow = 20 * time.Second; f.beat("node-0", noon.Add(80*time.Second)) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.lose("node-1", 10*time.Minute)
			change(f)
			before := f.tainted()
			f.reconcile()
			if len(f.reads) == 0 {
				t.Fatal("nothing was read live")
			}
			f.mustTaint(before...)
		})
	}
}

func taintOwn(n *corev1.Node) {
	n.Spec.Taints = []corev1.Taint{{Key: fence.OutOfServiceTaint, Value: fence.OwnTaintValue, Effect: corev1.TaintEffectNoExecute}}
}

func (f *fixture) pause(value string) {
	f.Helper()
	f.Must(f.Create(f.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fairlead-system", Name: "fairlead-switches"}, Data: map[string]string{"AUTOMATIC_TAINTING": value},
	}))
}

func TestSwitchThatIsOnDoesNotPause(t *testing.T) {
	f := newFixture(t)
	f.lose("node-1", 10*time.Minute)
	f.pause("true")
	f.reconcile()
	f.mustTaint("node-1")
}

func TestNothingIsTaintedWithoutAllFacts(t *testing.T) {
	for _, kind := range []string{"NodeList", "NodeFenceList", "LeaseList", "ConfigMap"} {
		f := newFixture(t)
		f.lose("node-1", 10*time.Minute)
		f.failing = kind
		f.fails()
		f.mustTaint()
		f.failing = ""
		f.Pass(pace)
		f.reconcile()
		f.mustTaint("node-1")
	}
}

func TestChangedNodeIsNotTainted(t *testing.T) {
	f := newFixture(t)
	f.lose("node-1", 10*time.Minute)
	f.Client.Before = func(fakeapi.Write) error {
		f.ready("node-1", corev1.ConditionTrue, noon)
		return nil
	}
	f.reconcile()
	f.mustTaint()
	f.mustCount(1, taintsTotal, resultConflict)
	f.mustCount(0, taintsTotal, resultTainted)
	f.mustHaveEvents(0)
}

func TestRefusedTaintIsRetried(t *testing.T) {
	f := newFixture(t)
	f.lose("node-1", 10*time.Minute)
	f.Client.Before = func(fakeapi.Write) error { return errors.New("an admission webhook refuses") }
	f.fails()
	f.mustCount(1, taintsTotal, resultFailed)
	f.Client.Before = nil
	if after := f.reconcile(); after != pace {
		t.Errorf("looks again after %s", after)
	}
	f.mustTaint()
	f.Pass(pace)
	f.reconcile()
	f.mustTaint("node-1")
}

func TestNodesAreTaintedOneAtATime(t *testing.T) {
	f := newFixture(t)
	f.r.Tainting.MaxNodes = 2
	f.lose("node-1", 10*time.Minute)
	f.lose("node-2", 20*time.Minute)
	f.lose("node-3", 15*time.Minute)
	f.reconcile()
	f.mustTaint("node-2")
	f.reconcile()
	f.mustTaint("node-2", "node-3")
	f.reconcile()
	f.Pass(time.Minute)
	f.beat("node-0", f.Clock.Now())
	f.sync()
	f.reconcile()
	f.mustTaint("node-2", "node-3")
	f.mustReport("NotTainted", "Node/node-1", "2 nodes are tainted")
}

func TestDryRunReportsOncePerIncident(t *testing.T) {
	f := newFixture(t)
	f.r.Tainting.Mode = taint.DryRun
	f.lose("node-1", 10*time.Minute)
	for range 3 {
		f.reconcile()
		f.Pass(time.Minute)
		f.beat("node-0", f.Clock.Now())
	}
	f.mustTaint()
	f.mustReport("WouldTaint", "Node/node-1", "would taint it now")
	f.mustReport("WouldTaint", "NodeFence/node-1", "pv-node-1")
	f.mustHaveEvents(2)
	f.mustCount(1, "fairlead_would_taint_nodes")
	f.ready("node-1", corev1.ConditionTrue, f.Clock.Now())
	f.sync()
	f.reconcile()
	if f.mustCount(0, "fairlead_would_taint_nodes"); len(f.r.told) > 0 {
		t.Errorf("remembered: %v", f.r.told)
	}
	f.lose("node-1", 10*time.Minute)
	f.reconcile()
	f.record("node-1", func(s *v1alpha1.NodeFenceStatus) { s.Incident = "the next one" })
	f.reconcileLater()
	f.mustHaveEvents(6)
}

// The controller itself remembers a taint until the fencing controller records it.
func TestRemovedTaintIsNotWrittenAgain(t *testing.T) {
	f := newFixture(t)
	f.lose("node-1", 10*time.Minute)
	f.reconcile()
	f.mustTaint("node-1")
	f.node("node-1", func(n *corev1.Node) { n.Spec.Taints = nil })
	f.sync()
	f.reconcile()
	f.mustTaint()
	f.mustReport("NotTainted", "NodeFence/node-1", "the taint was removed")
	f.record("node-1", func(s *v1alpha1.NodeFenceStatus) { at := metav1.NewTime(f.Clock.Now()); s.Tainted = &at })
	f.r.given = map[string]string{}
	f.reconcileLater()
	f.mustTaint()
}

func TestUntaintedNodeIsReportedOnce(t *testing.T) {
	f := newFixture(t)
	f.r.Tainting.MaxShare = 1
	f.lose("node-1", 10*time.Minute)
	f.reconcile()
	f.Pass(time.Minute)
	f.reconcile()
	f.mustReport("NotTainted", "Node/node-1", "ZoneShare")
	f.mustReport("NotTainted", "NodeFence/node-1", "more than 1 %")
	f.mustHaveEvents(2)
	f.mustCount(1, "fairlead_not_tainted_nodes", taint.ReasonZoneShare)
}

func TestNodeThatCannotBeFencedMakesRoomForTheNext(t *testing.T) {
	f := newFixture(t)
	f.lose("node-1", 20*time.Minute)
	f.lose("node-2", 10*time.Minute)
	var asked []string
	f.r.Facts = func(_ context.Context, node string) (fence.Facts, error) {
		asked = append(asked, node)
		return fence.Facts{NoCSIAddons: node == "node-1"}, nil
	}
	f.reconcile()
	f.mustTaint("node-2")
	f.mustReport("NotTainted", "Node/node-1", "csi-addons")
	if !slices.Equal(asked, []string{"node-1", "node-2"}) {
		t.Errorf("asked for %q", asked)
	}
	f = newFixture(t)
	f.lose("node-1", 10*time.Minute)
	f.r.Facts = func(context.Context, string) (fence.Facts, error) { return fence.Facts{}, errors.New("no answer") }
	f.fails()
	f.mustTaint()
}

func TestTaintingUsesTheFactsOfFencing(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*fixture)
		want   string
	}{
		"nothing prevents the fence": {func(*fixture) {}, ""},
		"a server has the address": {func(f *fixture) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "rook-ceph", Name: "mon-a", Labels: map[string]string{"app": "rook-ceph-mon"}}}
			pod.Spec.NodeName = "node-4"
			pod.Status.PodIP, pod.Status.PodIPs = "10.0.0.1", []corev1.PodIP{{IP: "10.0.0.1"}}
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
			f := newFixture(t)
			f.lose("node-1", 10*time.Minute)
			c.change(f)
			f.r.Facts = fencing.NewFenceReader(cephFencing, f.r.Live, f.Client, f.r.Live).FenceFacts(f.Clock, nil)
			f.reconcile()
			if c.want == "" {
				f.mustTaint("node-1")
				return
			}
			f.mustTaint()
			f.mustReport("NotTainted", "Node/node-1", "("+c.want+")")
		})
	}
}

// The cache keeps creation times: new nodes must not seem to return from a storm.
func TestNewNodesAreNoStorm(t *testing.T) {
	f := newFixture(t)
	f.r.Tainting.StormNodes = 2
	f.lose("node-1", 6*time.Minute)
	for _, name := range []string{"new-1", "new-2", "new-3"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(noon.Add(-2 * time.Minute))}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-time.Minute))}}
		f.Must(f.Create(f.Context(), node))
	}
	f.sync()
	f.reconcile()
	f.mustTaint("node-1")
}

func TestLiveReadsArePaced(t *testing.T) {
	f := newFixture(t)
	f.lose("node-1", 10*time.Minute)
	f.beat("node-1", noon)
	for range 20 {
		f.reconcile()
		f.Pass(time.Second)
	}
	if n := len(slices.DeleteFunc(f.reads, func(kind string) bool { return kind != "NodeList" })); n != 2 {
		t.Errorf("nodes were read %d times in 20 s", n)
	}
}

func TestOnlyRelevantChangesWakeTheController(t *testing.T) {
	f := newFixture(t)
	before := f.node("node-1", nil)
	for name, c := range map[string]struct {
		change func(*corev1.Node)
		want   bool
	}{
		"heartbeat":   {func(n *corev1.Node) { n.Status.Conditions[1].LastHeartbeatTime = metav1.NewTime(noon) }, false},
		"allocatable": {func(n *corev1.Node) { n.Status.Allocatable = corev1.ResourceList{} }, false},
		"not Ready":   {func(n *corev1.Node) { n.Status.Conditions[1].Status = corev1.ConditionFalse }, true},
		"cordoned":    {func(n *corev1.Node) { n.Spec.Unschedulable = true }, true},
		"tainted":     {taintOwn, true},
		"labelled":    {func(n *corev1.Node) { n.Labels = map[string]string{zoneLabel: "b"} }, true},
	} {
		after := before.DeepCopy()
		c.change(after)
		if got := nodeChanged(before, after); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	unknown, no := before.DeepCopy(), before.DeepCopy()
	unknown.Status.Conditions[1].Status, no.Status.Conditions[1].Status = corev1.ConditionUnknown, corev1.ConditionFalse
	if !nodeChanged(no, unknown) {
		t.Error("a silent kubelet is no change")
	}
	record := f.record("node-1", nil)
	for name, c := range map[string]struct {
		change func(*v1alpha1.NodeFenceStatus)
		want   bool
	}{
		"seen":  {func(s *v1alpha1.NodeFenceStatus) { at := metav1.NewTime(noon); s.LastHealthy = &at }, false},
		"lost":  {func(s *v1alpha1.NodeFenceStatus) { s.Phase = v1alpha1.NodeLost }, true},
		"holds": {func(s *v1alpha1.NodeFenceStatus) { s.Volumes = []v1alpha1.HeldVolume{{}} }, true},
	} {
		after := record.DeepCopy()
		c.change(&after.Status)
		if got := recordChanged(record, after); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestModeOffSetsNothingUp(t *testing.T) {
	if err := (&Reconciler{}).SetupWithManager(nil); err != nil {
		t.Error(err)
	}
	if err := (&Reconciler{Tainting: taint.Rules{Mode: "dry-run"}}).SetupWithManager(nil); err == nil {
		t.Error("an invalid mode passes")
	}
}

// Autoscaled nodes never get a name twice.
func TestDeletedNodeIsForgotten(t *testing.T) {
	f := newFixture(t)
	f.lose("node-1", 10*time.Minute)
	f.reconcile()
	f.sync()
	f.Pass(time.Minute)
	f.reconcile()
	if f.mustTaint("node-1"); len(f.r.given) != 1 {
		t.Fatalf("remembered are %v", f.r.given)
	}
	f.Must(f.Delete(t.Context(), f.node("node-1", nil)))
	f.sync()
	f.Pass(time.Minute)
	f.reconcile()
	if len(f.r.given) != 1 {
		t.Fatal("forgotten although the record is there")
	}
	f.Must(f.Delete(t.Context(), f.record("node-1", nil)))
	f.sync()
	f.Pass(time.Minute)
	f.reconcile()
	if len(f.r.given) != 0 {
		t.Fatalf("remembered are %v", f.r.given)
	}
}

package tainting

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/cluster/csiaddons"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/fence/taint"
)

func TestALostNodeIsTainted(t *testing.T) {
	f := newFixture(t)
	f.node("node-1", func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}}
	})
	f.lose("node-1", 10*time.Minute)
	before := f.record("node-1", nil)
	if again := f.reconcile(); again != settle {
		t.Errorf("looked at again after %s", again)
	}
	taints := f.node("node-1", nil).Spec.Taints
	if len(taints) != 2 || taints[0].Key != corev1.TaintNodeUnreachable {
		t.Fatalf("the taints are %+v", taints)
	}
	if own := taints[1]; own.Key != "node.kubernetes.io/out-of-service" || own.Value != "fairlead" || own.Effect != corev1.TaintEffectNoExecute || own.TimeAdded == nil {
		t.Errorf("the taint is %+v", own)
	}
	f.mustSay("OutOfService", "Node/node-1", "pv-node-1")
	f.mustSay("OutOfService", "NodeFence/node-1", "pv-node-1")
	if f.count(resultTainted) != 1 {
		t.Error("it is not counted")
	}
	if is := f.record("node-1", nil); is.ResourceVersion != before.ResourceVersion {
		t.Error("the record was written, which is another's")
	}
	f.reconcile() // the cache does not have it yet
	f.sync()
	f.reconcile()
	if f.mustTaint("node-1"); len(f.notes) != 2 || f.count(resultConflict) != 0 {
		t.Errorf("something more was done: %q", f.notes)
	}
}

func TestNothingIsReadLiveWhileNoNodeMayBeTainted(t *testing.T) {
	f := newFixture(t)
	if again := f.reconcile(); again != 0 {
		t.Errorf("all are Ready, and looked at again after %s", again)
	}
	f.lose("node-1", 4*time.Minute+50*time.Second)
	if again := f.reconcile(); again != 10*time.Second {
		t.Errorf("looked at again after %s", again)
	}
	f.lose("node-1", 10*time.Minute)
	f.record("node-1", func(s *v1alpha1.NodeFenceStatus) { s.Volumes = nil })
	f.sync()
	if again := f.reconcile(); again != 30*time.Second {
		t.Errorf("looked at again after %s", again)
	}
	if len(f.reads) > 0 || len(f.notes) > 0 {
		t.Errorf("read %q, said %q", f.reads, f.notes)
	}
	f.mustTaint()
}

// What the cache says is never enough, whatever it is that it is behind of.
func TestATaintFollowsFromALiveReadAlone(t *testing.T) {
	for name, change := range map[string]func(*fixture){
		"the node is Ready":       func(f *fixture) { f.ready("node-1", corev1.ConditionTrue, noon) },
		"the kubelet is back":     func(f *fixture) { f.beat("node-1", noon) },
		"nobody is heard of":      func(f *fixture) { f.pass(2 * time.Minute) },
		"another has just been":   func(f *fixture) { f.node("node-2", taintOwn) },
		"an operator was quicker": func(f *fixture) { f.node("node-1", func(n *corev1.Node) { taintOwn(n); n.Spec.Taints[0].Value = "" }) },
		"it is cordoned":          func(f *fixture) { f.node("node-1", func(n *corev1.Node) { n.Spec.Unschedulable = true }) },
		"it holds nothing any more": func(f *fixture) {
			f.record("node-1", func(s *v1alpha1.NodeFenceStatus) { s.Volumes = nil })
		},
		"it is kept out": func(f *fixture) {
			f.node("node-1", func(n *corev1.Node) { n.Annotations = map[string]string{taint.NoTaintAnnotation: "true"} })
		},
		"it holds what nobody fences": func(f *fixture) {
			f.node("node-1", func(n *corev1.Node) {
				n.Status.VolumesInUse = []corev1.UniqueVolumeName{"kubernetes.io/csi/" + cephDriver + "^a", "kubernetes.io/csi/other^a"}
			})
		},
		"it had what nobody fences attached": func(f *fixture) {
			f.node("node-1", func(n *corev1.Node) {
				n.Status.VolumesAttached = []corev1.AttachedVolume{{Name: "kubernetes.io/iscsi/a"}}
			})
		},
		"another has its address": func(f *fixture) {
			f.node("node-2", func(n *corev1.Node) {
				n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "node-2"}, {Type: corev1.NodeInternalIP, Address: "::ffff:10.0.0.1"}}
			})
		},
		"it has another boot": func(f *fixture) { f.node("node-1", func(n *corev1.Node) { n.Status.NodeInfo.BootID = "another" }) },
		"the node is gone":    func(f *fixture) { f.must(f.Delete(f.Context(), f.node("node-1", nil))) },
		"it is paused":        func(f *fixture) { f.pause("false") },
		"reading takes long":  func(f *fixture) { f.slow = 20 * time.Second; f.beat("node-0", noon.Add(80*time.Second)) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.lose("node-1", 10*time.Minute)
			change(f)
			before := f.tainted()
			f.reconcile()
			if len(f.reads) == 0 {
				t.Fatal("it did not come to a live read")
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
	f.must(f.Create(f.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fairlead-system", Name: "fairlead-switches"}, Data: map[string]string{"AUTOMATIC_TAINTING": value},
	}))
}

func TestASwitchThatIsOnPausesNothing(t *testing.T) {
	f := newFixture(t)
	f.lose("node-1", 10*time.Minute)
	f.pause("true")
	f.reconcile()
	f.mustTaint("node-1")
}

func TestNothingIsTaintedOnWhatCanNotBeRead(t *testing.T) {
	for _, kind := range []string{"NodeList", "NodeFenceList", "LeaseList", "ConfigMap"} {
		f := newFixture(t)
		f.lose("node-1", 10*time.Minute)
		f.failing = kind
		if _, err := f.r.Reconcile(t.Context(), ctrl.Request{}); err == nil {
			t.Errorf("%s can't be read, and nobody says so", kind)
		}
		f.mustTaint()
		f.failing = ""
		f.pass(pace)
		f.reconcile()
		f.mustTaint("node-1")
	}
}

func TestANodeThatHasChangedSinceIsNotTainted(t *testing.T) {
	f := newFixture(t)
	f.lose("node-1", 10*time.Minute)
	f.beforePatch = func() { f.ready("node-1", corev1.ConditionTrue, noon) }
	f.reconcile()
	f.mustTaint()
	if f.count(resultConflict) != 1 || f.count(resultTainted) != 0 || len(f.notes) > 0 {
		t.Errorf("%v conflicts; %q", f.count(resultConflict), f.notes)
	}
}

func TestATaintThatIsRefusedIsTriedAgain(t *testing.T) {
	f := newFixture(t)
	f.lose("node-1", 10*time.Minute)
	f.patchFails = errors.New("admission webhook says no")
	if _, err := f.r.Reconcile(t.Context(), ctrl.Request{}); err == nil {
		t.Error("nobody says so")
	}
	if f.count(resultFailed) != 1 {
		t.Error("it is not counted")
	}
	f.patchFails = nil
	if again := f.reconcile(); again != pace {
		t.Errorf("looked at again after %s", again)
	}
	f.mustTaint()
	f.pass(pace)
	f.reconcile()
	f.mustTaint("node-1")
}

func TestOneNodeAtATime(t *testing.T) {
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
	f.pass(time.Minute)
	f.beat("node-0", f.clock.Now())
	f.sync()
	f.reconcile()
	f.mustTaint("node-2", "node-3")
	f.mustSay("NotTainted", "Node/node-1", "2 nodes are tainted")
}

func TestADryRunSaysWhatItWouldDoOnceInAnIncident(t *testing.T) {
	f := newFixture(t)
	f.r.Tainting.Mode = taint.DryRun
	f.lose("node-1", 10*time.Minute)
	for range 3 {
		f.reconcile()
		f.pass(time.Minute)
		f.beat("node-0", f.clock.Now())
	}
	f.mustTaint()
	f.mustSay("WouldTaint", "Node/node-1", "would taint it now")
	f.mustSay("WouldTaint", "NodeFence/node-1", "pv-node-1")
	if len(f.notes) != 2 {
		t.Errorf("said %q", f.notes)
	}
	if would := f.metric("fairlead_would_taint_nodes"); would != 1 {
		t.Errorf("%v would be tainted", would)
	}
	f.ready("node-1", corev1.ConditionTrue, f.clock.Now())
	f.sync()
	f.reconcile()
	if would := f.metric("fairlead_would_taint_nodes"); would != 0 {
		t.Errorf("%v would be tainted", would)
	}
	if len(f.r.told) > 0 {
		t.Errorf("remembered: %v", f.r.told)
	}
	f.lose("node-1", 10*time.Minute)
	f.reconcile()
	f.record("node-1", func(s *v1alpha1.NodeFenceStatus) { s.Incident = "one that came right after" })
	f.pass(time.Minute)
	f.beat("node-0", f.clock.Now())
	f.reconcile()
	if len(f.notes) != 6 {
		t.Errorf("of other incidents is said %q", f.notes)
	}
}

// The fencing controller may be late to record the taint; the first one is
// remembered all the same, by this controller or, after it was started anew, on record.
func TestATaintThatSomebodyTakesAwayIsNotGivenAgain(t *testing.T) {
	f := newFixture(t)
	f.lose("node-1", 10*time.Minute)
	f.reconcile()
	f.mustTaint("node-1")
	f.node("node-1", func(n *corev1.Node) { n.Spec.Taints = nil })
	f.sync()
	f.reconcile()
	f.mustTaint()
	f.mustSay("NotTainted", "NodeFence/node-1", "taken the taint away")
	f.record("node-1", func(s *v1alpha1.NodeFenceStatus) { at := metav1.NewTime(f.clock.Now()); s.Tainted = &at })
	f.r.given = map[string]string{}
	f.pass(time.Minute)
	f.beat("node-0", f.clock.Now())
	f.reconcile()
	f.mustTaint()
}

func TestWhyANodeIsNotTaintedIsSaidOnce(t *testing.T) {
	f := newFixture(t)
	f.r.Tainting.MaxShare = 1
	f.lose("node-1", 10*time.Minute)
	f.reconcile()
	f.pass(time.Minute)
	f.reconcile()
	f.mustSay("NotTainted", "Node/node-1", "ZoneShare")
	f.mustSay("NotTainted", "NodeFence/node-1", "more than 1 %")
	if len(f.notes) != 2 {
		t.Errorf("said %q", f.notes)
	}
	if n := f.metric("fairlead_not_tainted_nodes", taint.ReasonZoneShare); n != 1 {
		t.Errorf("%v nodes are not tainted", n)
	}
}

// Who can't be fenced, by what only the fencing controller looks at, leaves its turn to the next.
func TestANodeThatCouldNotBeFencedIsPassedOver(t *testing.T) {
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
	f.mustSay("NotTainted", "Node/node-1", "csi-addons")
	if !slices.Equal(asked, []string{"node-1", "node-2"}) {
		t.Errorf("asked for %q", asked)
	}
	f = newFixture(t)
	f.lose("node-1", 10*time.Minute)
	f.r.Facts = func(context.Context, string) (fence.Facts, error) { return fence.Facts{}, errors.New("no answer") }
	if _, err := f.r.Reconcile(t.Context(), ctrl.Request{}); err == nil {
		t.Error("nobody says that it could not be asked")
	}
	f.mustTaint()
}

func TestTaintingGoesByWhatFencingGoesBy(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*fixture)
		want   string
	}{
		"nothing speaks against it": {func(*fixture) {}, ""},
		"a server has its address": {func(f *fixture) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "rook-ceph", Name: "mon-a", Labels: map[string]string{"app": "rook-ceph-mon"}}}
			pod.Spec.NodeName = "node-4"
			pod.Status.PodIP, pod.Status.PodIPs = "10.0.0.1", []corev1.PodIP{{IP: "10.0.0.1"}}
			f.must(f.Create(f.Context(), pod))
		}, fence.ReasonAddressInUse},
		"another object lets it in": {func(f *fixture) {
			left := &csiaddons.NetworkFence{ObjectMeta: metav1.ObjectMeta{Name: "left"}}
			left.Spec.FenceState, left.Spec.CIDRs = csiaddons.Unfenced, []string{"10.0.0.1/32"}
			f.must(f.Create(f.Context(), left))
		}, fence.ReasonLeftoverUnfenced},
		"csi-addons is not there": {func(f *fixture) { f.missing = "NetworkFenceList" }, fence.ReasonNoCSIAddons},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.lose("node-1", 10*time.Minute)
			c.change(f)
			f.r.Facts = cluster.NewFenceReader(cephFencing, f.r.Live, f.Client, f.r.Live).FenceFacts(f.clock, nil)
			f.reconcile()
			if c.want == "" {
				f.mustTaint("node-1")
				return
			}
			f.mustTaint()
			f.mustSay("NotTainted", "Node/node-1", "("+c.want+")")
		})
	}
}

// The cache keeps when a node was made, or nodes that have just been added would seem
// to be back from a storm.
func TestNewNodesAreNoStorm(t *testing.T) {
	f := newFixture(t)
	f.r.Tainting.StormNodes = 2
	f.lose("node-1", 6*time.Minute)
	for _, name := range []string{"new-1", "new-2", "new-3"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(noon.Add(-2 * time.Minute))}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-time.Minute))}}
		f.must(f.Create(f.Context(), node))
	}
	f.sync()
	f.reconcile()
	f.mustTaint("node-1")
}

// Nodes of a large cluster change all the time.
func TestLiveReadsArePaced(t *testing.T) {
	f := newFixture(t)
	f.lose("node-1", 10*time.Minute)
	f.beat("node-1", noon)
	for range 20 {
		f.reconcile()
		f.pass(time.Second)
	}
	if n := len(slices.DeleteFunc(f.reads, func(kind string) bool { return kind != "NodeList" })); n != 2 {
		t.Errorf("nodes were read %d times in 20 s", n)
	}
}

func TestChangesThatSayNothingPass(t *testing.T) {
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
		t.Error("a kubelet that falls silent is no change")
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

func TestOffSetsNothingUp(t *testing.T) {
	if err := (&Reconciler{}).SetupWithManager(nil); err != nil {
		t.Error(err)
	}
	if err := (&Reconciler{Tainting: taint.Rules{Mode: "dry-run"}}).SetupWithManager(nil); err == nil {
		t.Error("a mode that is none passes")
	}
}

var _ client.Client = through{}

// Autoscaled nodes never get a name twice.
func TestANodeThatIsGoneIsNotRememberedAsTainted(t *testing.T) {
	f := newFixture(t)
	f.lose("node-1", 10*time.Minute)
	f.reconcile()
	f.sync()
	f.pass(time.Minute)
	f.reconcile()
	if f.mustTaint("node-1"); len(f.r.given) != 1 {
		t.Fatalf("remembered are %v", f.r.given)
	}
	f.must(f.Delete(t.Context(), f.node("node-1", nil)))
	f.sync()
	f.pass(time.Minute)
	f.reconcile()
	if len(f.r.given) != 1 {
		t.Fatal("its record is there: it may come back, or its record be late")
	}
	f.must(f.Delete(t.Context(), f.record("node-1", nil)))
	f.sync()
	f.pass(time.Minute)
	f.reconcile()
	if len(f.r.given) != 0 {
		t.Fatalf("remembered are %v", f.r.given)
	}
}

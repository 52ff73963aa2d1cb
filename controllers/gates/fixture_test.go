package gates

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

const driver, otherDriver = "rook-ceph.cephfs.csi.ceph.com", "ebs.csi.aws.com"

// fixture is the reconciler over a fake API. The pod app waits, node-1 is lost or not.
type fixture struct {
	*testkit.Bench
	r *Reconciler
	// lists of pods by the reconciler.
	lists int
}

func newFixture(t *testing.T, more ...client.Object) *fixture {
	t.Helper()
	indexes := fakeapi.Indexes{{Object: &corev1.Pod{}, Field: fence.GatedLabel, Keys: func(o client.Object) []string { return []string{o.GetLabels()[fence.GatedLabel]} }}}
	f := &fixture{Bench: testkit.NewBench(t, fakeapi.New(testkit.Value[*runtime.Scheme](t)(reads.NewScheme()), indexes), more...)}
	f.Client.Reading = func(o runtime.Object) error {
		if _, pods := o.(*corev1.PodList); pods {
			f.lists++
		}
		return nil
	}
	policy := fence.Policy{Storages: func(name string) (fence.StoragePolicy, bool) {
		return fence.StoragePolicy{Mode: fence.ModeFence}, name == driver
	}}
	f.r = &Reconciler{Client: f.Client, Policy: policy, Holders: fencingreads.NewHolderReader(f.Client, fencingreads.NewHoldings(f.API, func(name string) bool { return name == driver })), Live: f.Client, Events: f.Events, Log: f.Log}
	go func() { _ = f.r.Holders.Held.Start(t.Context()) }()
	for !f.r.Holders.Held.Synced() {
		time.Sleep(time.Millisecond)
	}
	return f
}

// beforePatch changes something once, between the reconciler's read and its patch.
func (f *fixture) beforePatch(change func()) {
	f.Client.Before = func(fakeapi.Write) error {
		f.Client.Before = nil
		change()
		return nil
	}
}

var request = ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: "app"}}

// reconcile returns the pod app as the reconciler leaves the pod.
func (f *fixture) reconcile() *corev1.Pod {
	f.Helper()
	testkit.Value[ctrl.Result](f)(f.r.Reconcile(f.Context(), request))
	return testkit.Get[corev1.Pod](f, f.API, "default", "app")
}

func (f *fixture) mustHaveGates(want ...string) {
	f.Helper()
	var got []string
	for _, g := range f.reconcile().Spec.SchedulingGates {
		got = append(got, g.Name)
	}
	if !slices.Equal(got, want) {
		f.Fatalf("the pod has gates %q, want %q; events: %q", got, want, f.Events.Notes())
	}
}

func (f *fixture) mustRemember(want int) {
	f.Helper()
	if got := f.r.reports.Len(); got != want {
		f.Fatalf("remembers %d reports, want %d", got, want)
	}
}

// waiting is the pod app, which has the gates of two owners.
func waiting(claims ...string) *corev1.Pod {
	p := objects.Pod("default", "app", "", claims...)
	p.Labels = map[string]string{fence.GatedLabel: "true", "app": "x"}
	p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "other.io/gate"}, {Name: fence.SchedulingGate}}
	return p
}

func volume(name, driver string) *corev1.PersistentVolume {
	return objects.Volume(name, driver, "handle-"+name, name, objects.InCluster("rook-ceph"))
}

func node(ready corev1.ConditionStatus) *corev1.Node {
	return objects.Node("node-1", objects.Readiness(ready, testkit.Noon))
}

// record of node-1, which holds the volume data and is to be fenced for the volume.
func record() *v1alpha1.NodeFence {
	return &v1alpha1.NodeFence{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Status: v1alpha1.NodeFenceStatus{
		Phase: v1alpha1.NodeFencing, Reason: fence.ReasonFencing, Incident: "incident",
		Volumes: []v1alpha1.HeldVolume{{PersistentVolume: "data", Driver: driver, ClusterID: "rook-ceph"}},
	}}
}

// fenced completes the fence of node-1.
func (f *fixture) fenced() {
	f.Helper()
	testkit.Change(f.Bench, "", "node-1", func(n *v1alpha1.NodeFence) {
		n.Status.Phase, n.Status.Reason = v1alpha1.NodeFenced, fence.ReasonFenced
		n.Status.Fences = []v1alpha1.Fence{{Incident: "incident", Driver: driver, ClusterID: "rook-ceph", State: v1alpha1.FenceFenced}}
	})
}

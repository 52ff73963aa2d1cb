package tainting

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/fence/taint"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/reads/caches"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

const (
	cephDriver = "rook-ceph.rbd.csi.ceph.com"
	zoneLabel  = "topology.kubernetes.io/zone"
)

var noon = testkit.Noon

// fixture is the controller over a fake API of five nodes, seen through a cache that
// is as slim as the real one, and as old as the last sync.
type fixture struct {
	*testkit.Bench
	r *Reconciler
	// reads are the kinds that were read live.
	reads []string
	// failing can't be read, because of fault; missing is a kind that is not installed.
	failing, missing string
	fault            error
	// slow is how long each live read takes.
	slow time.Duration
	// after is when the last reconcile is to be repeated.
	after     time.Duration
	transform toolscache.TransformFunc
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	indexes := fakeapi.Indexes{fakeapi.PodsByNode()}
	testkit.Must(t, fencingreads.IndexFencing(t.Context(), &indexes))
	api := fakeapi.New(testkit.Value[*runtime.Scheme](t)(reads.NewScheme()), indexes, &v1alpha1.NodeFence{}, &corev1.Node{})
	f := &fixture{Bench: testkit.NewBench(t, api), transform: nodeTransform(t)}
	f.Client.Cache = f.NewCache()
	live := f.API.Client()
	live.Reading = f.read
	f.r = &Reconciler{
		Tainting: taint.Rules{Mode: taint.On, StormNodes: 9, MaxShare: 100},
		Policy: fence.Policy{MaxAge: fence.DefaultMaxAge, Storages: func(driver string) (fence.StoragePolicy, bool) {
			return fence.StoragePolicy{Mode: fence.ModeFence}, driver == cephDriver
		}},
		Client: f.Client, Live: live, Events: f.Events, Clock: f.Clock, Log: f.Log,
	}
	f.Must(f.r.prepare(f.Registry))
	for i := range 5 {
		f.add(fmt.Sprintf("node-%d", i))
	}
	return f.sync()
}

var cephFencing = config.Fencing{
	Profiles: []config.FencingProfile{{Name: "rook-ceph", Namespace: "rook-ceph", Mode: config.Fence}},
	MaxAge:   metav1.Duration{Duration: fence.DefaultMaxAge},
}

// nodeTransform is what the real cache keeps of a node.
func nodeTransform(t *testing.T) toolscache.TransformFunc {
	options := testkit.Value[cache.Options](t)(caches.ControllerCache(nil, cephFencing))
	for o, by := range options.ByObject {
		if _, ok := o.(*corev1.Node); ok {
			return by.Transform
		}
	}
	t.Fatal("nodes are not cached")
	return nil
}

func (f *fixture) read(o runtime.Object) error {
	kind := fakeapi.KindOf(o)
	f.reads = append(f.reads, kind)
	f.Pass(f.slow)
	switch kind {
	case f.missing:
		return &meta.NoKindMatchError{}
	case f.failing:
		return cmp.Or(f.fault, errors.New("no answer"))
	}
	return nil
}

// sync brings the cache up to date.
func (f *fixture) sync() *fixture {
	f.Helper()
	slim := func(o any) (any, error) {
		if _, ok := o.(*corev1.Node); ok {
			return f.transform(o)
		}
		return o, nil
	}
	f.Client.Cache.Release()
	f.Must(f.Client.Cache.Freeze(f.Context(), slim, &corev1.NodeList{}, &v1alpha1.NodeFenceList{}))
	return f
}

// add makes a healthy node, its lease and its record.
func (f *fixture) add(name string) *fixture {
	f.Helper()
	node := objects.Node(name)
	node.CreationTimestamp = metav1.NewTime(noon.Add(-48 * time.Hour))
	node.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionUnknown},
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-24 * time.Hour))},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse},
	}
	record := &v1alpha1.NodeFence{ObjectMeta: metav1.ObjectMeta{Name: name}}
	record.Spec = v1alpha1.NodeFenceSpec{NodeName: name, Boot: fencingreads.FenceNode(node).Boot}
	for _, o := range []client.Object{node, record, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: name}}} {
		f.Must(f.Seed(f.Context(), o))
	}
	return f.beat(name, noon)
}

func (f *fixture) beat(name string, at time.Time) *fixture {
	f.Helper()
	testkit.Change(f.Bench, corev1.NamespaceNodeLease, name, func(l *coordinationv1.Lease) { l.Spec.RenewTime = ptr.To(metav1.NewMicroTime(at)) })
	return f
}

// node changes a Node, and returns it.
func (f *fixture) node(name string, change func(*corev1.Node)) *corev1.Node {
	f.Helper()
	if change != nil {
		testkit.Change(f.Bench, "", name, change)
	}
	return testkit.Get[corev1.Node](f, f.API, "", name)
}

// record changes a NodeFence, and returns it.
func (f *fixture) record(name string, change func(*v1alpha1.NodeFenceSpec)) *v1alpha1.NodeFence {
	f.Helper()
	if change != nil {
		testkit.Change(f.Bench, "", name, func(n *v1alpha1.NodeFence) { change(&n.Spec) })
	}
	return testkit.Get[v1alpha1.NodeFence](f, f.API, "", name)
}

// lose makes a node one that was lost so long ago, and that can be fenced.
func (f *fixture) lose(name string, ago time.Duration) *fixture {
	f.Helper()
	at := metav1.NewTime(f.Clock.Now().Add(-ago))
	f.ready(name, corev1.ConditionUnknown, at.Time)
	f.beat(name, at.Add(-50*time.Second))
	f.record(name, func(s *v1alpha1.NodeFenceSpec) {
		s.LostSince = &at
		s.Volumes = []v1alpha1.HeldVolume{{PersistentVolume: "pv-" + name, Driver: cephDriver, ClusterID: "c"}}
		s.Identities = []v1alpha1.StorageIdentity{{Driver: cephDriver, ClusterID: "c", Class: "class", Addresses: []v1alpha1.ClientAddress{
			{CIDR: "10.0.0." + strings.TrimPrefix(name, "node-") + "/32", Source: fence.SourceCSIAddonsNode, LastSeen: metav1.NewTime(at.Add(-time.Minute))},
		}}}
	})
	return f.sync()
}

func (f *fixture) ready(name string, status corev1.ConditionStatus, since time.Time) *fixture {
	f.Helper()
	f.node(name, func(n *corev1.Node) {
		n.Status.Conditions[1].Status, n.Status.Conditions[1].LastTransitionTime = status, metav1.NewTime(since)
	})
	return f
}

func (f *fixture) reconcile() *fixture {
	f.Helper()
	f.after = testkit.Value[ctrl.Result](f)(f.r.Reconcile(f.Context(), ctrl.Request{})).RequeueAfter
	return f
}

// mustWait compares when the last reconcile is to be repeated.
func (f *fixture) mustWait(want time.Duration) *fixture {
	f.Helper()
	must.True(f, f.after == want, "looks again after %s, want %s", f.after, want)
	return f
}

func (f *fixture) pass(d time.Duration) *fixture { f.Pass(d); return f }

// lostLongAgo makes a node one that may be tainted.
func (f *fixture) lostLongAgo(name string) *fixture { f.Helper(); return f.lose(name, 10*time.Minute) }

// reconcileLater reconciles after a minute in which another node renewed its lease.
func (f *fixture) reconcileLater() *fixture {
	f.Helper()
	return f.pass(time.Minute).beat("node-0", f.Clock.Now()).reconcile()
}

func (f *fixture) fails() *fixture {
	f.Helper()
	_, err := f.r.Reconcile(f.Context(), ctrl.Request{})
	must.True(f, err != nil, "the reconcile does not fail")
	return f
}

func (f *fixture) tainted() []string {
	f.Helper()
	var nodes corev1.NodeList
	f.Must(f.API.List(f.Context(), &nodes))
	var names []string
	for _, n := range nodes.Items {
		if slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == fence.OutOfServiceTaint }) {
			names = append(names, n.Name)
		}
	}
	return names
}

func (f *fixture) mustTaint(want ...string) *fixture {
	f.Helper()
	got := f.tainted()
	must.True(f, slices.Equal(got, want), "got %q tainted, want %q; events: %q", got, want, f.Events.Notes())
	return f
}

// mustReport looks for an event of a reason about an object that has a text.
func (f *fixture) mustReport(reason, about, text string) *fixture {
	f.Helper()
	must.True(f, len(f.Events.About(" "+reason+" ", about+": ", text)) != 0, "no event %s about %s has %q: %q", reason, about, text, f.Events.About())
	return f
}

func (f *fixture) mustHaveEvents(want int) *fixture {
	f.Helper()
	got := f.Events.About()
	must.True(f, len(got) == want, "got %d events, want %d: %q", len(got), want, got)
	return f
}

func (f *fixture) mustCount(want float64, metric string, labels ...string) *fixture {
	f.Helper()
	must.Equal(f, f.Metric(metric, labels...), want, "%s %q ", metric, labels)
	return f
}

const taintsTotal = "fairlead_automatic_taints_total"

package tainting

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/fence/taint"
)

const (
	cephDriver = "rook-ceph.rbd.csi.ceph.com"
	zoneLabel  = "topology.kubernetes.io/zone"
)

var (
	noon      = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	newScheme = sync.OnceValues(cluster.NewScheme)
)

// fixture is the controller over a fake API of five nodes, seen through a cache that
// is as slim as the real one, and as old as the last sync.
type fixture struct {
	*testing.T
	client.Client // the API
	cached        client.Reader
	r             *Reconciler
	clock         *clocktesting.FakePassiveClock
	notes         []string
	// reads are the kinds that were read live. failing is one that can't be, by fault, missing
	// one that is not installed, and slow how long each reading takes; beforePatch is
	// what happens before a write.
	reads       []string
	failing     string
	fault       error
	missing     string
	slow        time.Duration
	beforePatch func()
	patchFails  error
	transform   toolscache.TransformFunc
	registry    *prometheus.Registry
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{T: t, registry: prometheus.NewRegistry(), clock: clocktesting.NewFakePassiveClock(noon)}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.NodeFence{}, &corev1.Node{}).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} })
	f.must(cluster.IndexClaims(t.Context(), indexes{builder}))
	f.must(cluster.IndexHandles(t.Context(), indexes{builder}))
	api := builder.Build()
	f.Client = api
	f.transform = nodeTransform(t)
	live := interceptor.NewClient(api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return f.read(o, func() error { return c.Get(ctx, key, o, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return f.read(list, func() error { return c.List(ctx, list, opts...) })
		},
	})
	f.r = &Reconciler{
		Tainting: taint.Rules{Mode: taint.On, StormNodes: 9, MaxShare: 100},
		Policy: fence.Policy{MaxAge: fence.DefaultMaxAge, Storages: func(driver string) (fence.StoragePolicy, bool) {
			return fence.StoragePolicy{Mode: fence.ModeFence}, driver == cephDriver
		}},
		Client: through{api, f}, Live: live, Events: recorder{f}, Clock: f.clock, Log: slog.New(slog.DiscardHandler),
	}
	f.must(f.r.prepare(f.registry))
	for i := range 5 {
		f.add(fmt.Sprintf("node-%d", i))
	}
	f.sync()
	return f
}

type indexes struct{ *fake.ClientBuilder }

func (i indexes) IndexField(_ context.Context, o client.Object, field string, extract client.IndexerFunc) error {
	i.WithIndex(o, field, extract)
	return nil
}

var cephFencing = config.Fencing{
	Profiles: []config.FencingProfile{{Name: "rook-ceph", Namespace: "rook-ceph", Mode: config.Fence}},
	MaxAge:   metav1.Duration{Duration: fence.DefaultMaxAge},
}

// nodeTransform is what the real cache keeps of a node.
func nodeTransform(t *testing.T) toolscache.TransformFunc {
	options, err := cluster.ControllerCache(nil, cephFencing)
	if err != nil {
		t.Fatal(err)
	}
	for o, by := range options.ByObject {
		if _, ok := o.(*corev1.Node); ok {
			return by.Transform
		}
	}
	t.Fatal("nodes are not cached")
	return nil
}

// through writes to the API and reads from the cache.
type through struct {
	client.Client
	*fixture
}

func (c through) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return c.cached.Get(ctx, key, o, opts...)
}

func (c through) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.cached.List(ctx, list, opts...)
}

func (c through) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if c.beforePatch != nil {
		c.beforePatch()
	}
	if c.patchFails != nil {
		return c.patchFails
	}
	return c.Client.Patch(ctx, o, patch, opts...)
}

func (c through) Status() client.SubResourceWriter              { return c.Client.Status() }
func (c through) SubResource(s string) client.SubResourceClient { return c.Client.SubResource(s) }
func (c through) Scheme() *runtime.Scheme                       { return c.Client.Scheme() }
func (c through) RESTMapper() meta.RESTMapper                   { return c.Client.RESTMapper() }

type recorder struct{ *fixture }

func (r recorder) Eventf(about, _ runtime.Object, kind, reason, _, note string, args ...any) {
	o := about.(client.Object)
	r.notes = append(r.notes, fmt.Sprintf("%s %s %s/%s: ", kind, reason, strings.TrimPrefix(fmt.Sprintf("%T", about), "*v1."), o.GetName())+fmt.Sprintf(note, args...))
}

func (f *fixture) read(o runtime.Object, do func() error) error {
	kind := fmt.Sprintf("%T", o)
	kind = kind[strings.LastIndex(kind, ".")+1:]
	f.reads = append(f.reads, kind)
	f.pass(f.slow)
	if kind == f.missing {
		return &meta.NoKindMatchError{}
	}
	if kind == f.failing {
		return cmp.Or(f.fault, errors.New("no answer"))
	}
	return do()
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) pass(d time.Duration) { f.clock.SetTime(f.clock.Now().Add(d)) }

// sync brings the cache up to date.
func (f *fixture) sync() {
	f.Helper()
	var nodes corev1.NodeList
	var records v1alpha1.NodeFenceList
	f.must(f.Client.List(f.Context(), &nodes))
	f.must(f.Client.List(f.Context(), &records))
	builder := fake.NewClientBuilder().WithScheme(f.Client.Scheme())
	for i := range nodes.Items {
		slim, err := f.transform(&nodes.Items[i])
		f.must(err)
		builder.WithObjects(slim.(client.Object))
	}
	for i := range records.Items {
		builder.WithObjects(&records.Items[i])
	}
	f.cached = builder.Build()
}

// add makes a healthy node, its lease and its record.
func (f *fixture) add(name string) {
	f.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(noon.Add(-48 * time.Hour))}}
	node.Status.NodeInfo.BootID = "boot-" + name
	node.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionUnknown},
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-24 * time.Hour))},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse},
	}
	record := &v1alpha1.NodeFence{ObjectMeta: metav1.ObjectMeta{Name: name}}
	record.Status.Phase, record.Status.Node = v1alpha1.NodeHealthy, v1alpha1.MachineIdentity{BootID: node.Status.NodeInfo.BootID}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: name}}
	status := record.Status
	f.must(f.Create(f.Context(), node))
	f.must(f.Create(f.Context(), record))
	record.Status = status
	f.must(f.Client.Status().Update(f.Context(), record))
	f.must(f.Create(f.Context(), lease))
	f.beat(name, noon)
}

// beat renews a node's lease.
func (f *fixture) beat(name string, at time.Time) {
	f.Helper()
	var lease coordinationv1.Lease
	f.must(f.Client.Get(f.Context(), client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: name}, &lease))
	renewed := metav1.NewMicroTime(at)
	lease.Spec.RenewTime = &renewed
	f.must(f.Update(f.Context(), &lease))
}

// node changes a Node.
func (f *fixture) node(name string, change func(*corev1.Node)) *corev1.Node {
	f.Helper()
	var node corev1.Node
	f.must(f.Client.Get(f.Context(), client.ObjectKey{Name: name}, &node))
	if change != nil {
		status := node.Status.DeepCopy()
		change(&node)
		changed := node.Status
		node.Status = *status
		f.must(f.Update(f.Context(), &node))
		node.Status = changed
		f.must(f.Client.Status().Update(f.Context(), &node))
	}
	return &node
}

// record changes a NodeFence.
func (f *fixture) record(name string, change func(*v1alpha1.NodeFenceStatus)) *v1alpha1.NodeFence {
	f.Helper()
	var record v1alpha1.NodeFence
	f.must(f.Client.Get(f.Context(), client.ObjectKey{Name: name}, &record))
	if change != nil {
		change(&record.Status)
		f.must(f.Client.Status().Update(f.Context(), &record))
	}
	return &record
}

// lose makes a node one that was lost so long ago, and that can be fenced.
func (f *fixture) lose(name string, ago time.Duration) {
	f.Helper()
	at := metav1.NewTime(f.clock.Now().Add(-ago))
	f.ready(name, corev1.ConditionUnknown, at.Time)
	f.beat(name, at.Add(-50*time.Second))
	f.record(name, func(s *v1alpha1.NodeFenceStatus) {
		s.Phase, s.LostSince, s.Incident = v1alpha1.NodeLost, &at, "incident-of-"+name+at.Format("1504")
		s.Volumes = []v1alpha1.HeldVolume{{PersistentVolume: "pv-" + name, Driver: cephDriver, ClusterID: "c"}}
		s.Identities = []v1alpha1.StorageIdentity{{Driver: cephDriver, ClusterID: "c", Class: "class", Addresses: []v1alpha1.ClientAddress{
			{CIDR: "10.0.0." + strings.TrimPrefix(name, "node-") + "/32", Source: fence.SourceCSIAddonsNode, LastSeen: metav1.NewTime(at.Add(-time.Minute))},
		}}}
	})
	f.sync()
}

func (f *fixture) ready(name string, status corev1.ConditionStatus, since time.Time) {
	f.Helper()
	f.node(name, func(n *corev1.Node) {
		n.Status.Conditions[1].Status, n.Status.Conditions[1].LastTransitionTime = status, metav1.NewTime(since)
	})
}

func (f *fixture) reconcile() time.Duration {
	f.Helper()
	result, err := f.r.Reconcile(f.Context(), ctrl.Request{})
	f.must(err)
	return result.RequeueAfter
}

// tainted are the nodes with the taint, as the API has them.
func (f *fixture) tainted() []string {
	f.Helper()
	var nodes corev1.NodeList
	f.must(f.Client.List(f.Context(), &nodes))
	var names []string
	for _, n := range nodes.Items {
		if slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == fence.OutOfServiceTaint }) {
			names = append(names, n.Name)
		}
	}
	return names
}

func (f *fixture) mustTaint(want ...string) {
	f.Helper()
	if got := f.tainted(); !slices.Equal(got, want) {
		f.Fatalf("got %q tainted, want %q; notes: %q", got, want, f.notes)
	}
}

// mustSay looks for an event of a reason about an object that says something.
func (f *fixture) mustSay(reason, about, what string) {
	f.Helper()
	if !slices.ContainsFunc(f.notes, func(n string) bool {
		return strings.Contains(n, " "+reason+" ") && strings.Contains(n, about+": ") && strings.Contains(n, what)
	}) {
		f.Fatalf("no event %s about %s says %q: %q", reason, about, what, f.notes)
	}
}

func (f *fixture) count(result string) float64 {
	return f.metric("fairlead_automatic_taints_total", result)
}

// metric is the value with a label, or of the one that has none.
func (f *fixture) metric(name string, label ...string) float64 {
	f.Helper()
	families, err := f.registry.Gather()
	f.must(err)
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			var values []string
			for _, l := range m.GetLabel() {
				values = append(values, l.GetValue())
			}
			if slices.Equal(values, label) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	f.Fatalf("there is no metric %s %q", name, label)
	return 0
}

package fencing

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/cluster/csiaddons"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
)

const (
	rbd    = "rook-ceph.rbd.csi.ceph.com"
	cephfs = "rook-ceph.cephfs.csi.ceph.com"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// world is the controller over a fake API with two nodes, Rook's client pods on
// them on the host network, and a storage class.
type world struct {
	*testing.T
	client.Client
	r     *Reconciler
	clock *clocktesting.FakePassiveClock
	notes []string
	// writes of the controller in order, as <verb> <kind> <name>.
	writes []string
	// funcs stand between the controller and the API; the test itself goes past them.
	funcs interceptor.Funcs
	// driver says what becomes of a NetworkFence; nil is success.
	driver func(*csiaddons.NetworkFence) error
	config config.Fencing
	// registry of the metrics since the last restart.
	registry *prometheus.Registry
}

type recorder struct{ *world }

func (r recorder) Eventf(regarding, _ runtime.Object, kind, reason, _, note string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf("%T %s %s: %s", regarding, kind, reason, fmt.Sprintf(note, args...)))
}

type indexes struct{ *fake.ClientBuilder }

func (i indexes) IndexField(_ context.Context, o client.Object, field string, extract client.IndexerFunc) error {
	i.WithIndex(o, field, extract)
	return nil
}

func fencingOf(mode config.Switch) config.Fencing {
	return config.Fencing{
		Profiles: []config.FencingProfile{{Name: "rook-ceph", Namespace: "rook-ceph", Mode: mode, Addresses: config.AddressesNode}},
		MaxAge:   metav1.Duration{Duration: fence.DefaultMaxAge}, Returning: config.Returning{ReadyFor: metav1.Duration{Duration: fence.DefaultReadyFor}},
	}
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{T: t, clock: clocktesting.NewFakePassiveClock(noon), config: fencingOf(config.Fence)}
	scheme, err := cluster.NewScheme()
	w.must(err)
	objects = append([]client.Object{
		node("node-1", "192.168.1.1"), node("node-2", "192.168.1.2"),
		clientPod("csi-rbdplugin-1", "node-1"), clientPod("csi-rbdplugin-2", "node-2"),
		storageClass("block", rbd, "rook-ceph"),
		volume("pvc-a", rbd, "rook-ceph"), attachment("pvc-a", "node-1"),
	}, objects...)
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.NodeFence{}, &csiaddons.NetworkFence{}).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} })
	w.must(cluster.IndexClaims(t.Context(), indexes{builder}))
	w.must(cluster.IndexHandles(t.Context(), indexes{builder}))
	for _, i := range cluster.FenceIndexes() {
		builder.WithIndex(i.Object, i.Field, i.Keys)
	}
	w.must((&cluster.FenceReader{}).WithIndexes().IndexAddons(t.Context(), indexes{builder}))
	w.Client = builder.Build()
	w.restart()
	return w
}

// restart is a new leader, which remembers nothing.
func (w *world) restart() {
	w.Helper()
	wrote := func(verb string, o client.Object) {
		w.writes = append(w.writes, fmt.Sprintf("%s %T %s", verb, o, o.GetName()))
	}
	api := interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if w.funcs.Get != nil {
				return w.funcs.Get(ctx, c, key, o, opts...)
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if w.funcs.List != nil {
				return w.funcs.List(ctx, c, list, opts...)
			}
			return c.List(ctx, list, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if w.funcs.Create != nil {
				if err := w.funcs.Create(ctx, c, o, opts...); err != nil {
					return err
				}
			}
			wrote("create", o)
			if n, ok := o.(*csiaddons.NetworkFence); ok {
				n.CreationTimestamp, n.UID = metav1.NewTime(w.clock.Now()), types.UID(fmt.Sprint("uid-", len(w.writes)))
			}
			return c.Create(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if w.funcs.Delete != nil {
				if err := w.funcs.Delete(ctx, c, o, opts...); err != nil {
					return err
				}
			}
			wrote("delete", o)
			return c.Delete(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if w.funcs.Patch != nil {
				if err := w.funcs.Patch(ctx, c, o, patch, opts...); err != nil {
					return err
				}
			}
			wrote("patch", o)
			return c.Patch(ctx, o, patch, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			if w.funcs.SubResourceUpdate != nil {
				if err := w.funcs.SubResourceUpdate(ctx, c, sub, o, opts...); err != nil {
					return err
				}
			}
			wrote("update "+sub, o)
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
	})
	w.registry = prometheus.NewRegistry()
	m, err := newMetrics(w.registry)
	w.must(err)
	w.r = &Reconciler{
		Client: api, Cached: cluster.NewFenceReader(w.config, api, api, api).WithIndexes(), Live: cluster.NewFenceReader(w.config, api, api, api), API: api,
		Events: recorder{w}, Clock: w.clock, Log: slog.New(slog.DiscardHandler), metrics: m,
	}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// look reconciles a node until it has nothing to record any more.
func (w *world) look(node string) ctrl.Result {
	w.Helper()
	result, err := w.r.Reconcile(w.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: node}})
	w.must(err)
	return result
}

// csi is csi-addons: it does what NetworkFences ask for.
func (w *world) csi() {
	w.Helper()
	for _, n := range w.fences() {
		was := n.Status
		n.Status = csiaddons.NetworkFenceStatus{Result: "Succeeded", Message: "fencing operation successful"}
		if n.Spec.FenceState == csiaddons.Unfenced {
			n.Status.Message = "unfencing operation successful"
		}
		if w.driver != nil {
			if err := w.driver(&n); err != nil {
				n.Status = csiaddons.NetworkFenceStatus{Result: "Failed", Message: err.Error()}
			}
		}
		if was != n.Status {
			w.must(w.Status().Update(w.Context(), &n))
		}
	}
}

func (w *world) fences() []csiaddons.NetworkFence {
	w.Helper()
	var list csiaddons.NetworkFenceList
	w.must(w.List(w.Context(), &list))
	return list.Items
}

func (w *world) record(node string) *v1alpha1.NodeFence {
	w.Helper()
	var record v1alpha1.NodeFence
	w.must(w.Get(w.Context(), client.ObjectKey{Name: node}, &record))
	return &record
}

func (w *world) expect(node string, phase v1alpha1.NodeFencePhase, reason string) v1alpha1.NodeFenceStatus {
	w.Helper()
	record := w.record(node)
	if s := record.Status; s.Phase != phase || s.Reason != reason {
		w.Fatalf("node %s is %s (%s), want %s (%s): %s", node, s.Phase, s.Reason, phase, reason, s.Message)
	}
	if s := record.Status; s.Message != "" && (!strings.HasSuffix(s.Message, fence.Link(s.Reason)) || strings.Count(s.Message, fence.PageOf("")) > 1) {
		w.Fatalf("node %s is %s (%s), and the message links elsewhere: %s", node, s.Phase, s.Reason, s.Message)
	}
	if got := record.Labels[fence.PhaseLabel]; got != fence.PhaseLabelValue(record.Status) {
		w.Fatalf("node %s is %s and labelled %s", node, phase, got)
	}
	if got := slices.Contains(record.Finalizers, fence.RecordFinalizer); got != fence.Keep(record.Status) {
		w.Fatalf("node %s is %s, and the finalizer is there: %v", node, phase, got)
	}
	return record.Status
}

func (w *world) change(name string, how func(*corev1.Node)) {
	w.Helper()
	var n corev1.Node
	w.must(w.Get(w.Context(), client.ObjectKey{Name: name}, &n))
	how(&n)
	status := n.Status
	w.must(w.Update(w.Context(), &n))
	n.Status = status
	w.must(w.Status().Update(w.Context(), &n))
}

func (w *world) node(name string) *corev1.Node {
	w.Helper()
	var n corev1.Node
	w.must(w.Get(w.Context(), client.ObjectKey{Name: name}, &n))
	return &n
}

func (w *world) lose(name string) { w.Helper(); w.change(name, w.ready(corev1.ConditionUnknown)) }

func (w *world) ready(status corev1.ConditionStatus) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(w.clock.Now())}}
	}
}

func (w *world) taint(name, value string) {
	w.Helper()
	w.change(name, func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: fence.OutOfServiceTaint, Value: value, Effect: corev1.TaintEffectNoExecute}}
	})
}

func (w *world) untaint(name string) {
	w.Helper()
	w.change(name, func(n *corev1.Node) { n.Spec.Taints = nil })
}

// boot brings a lost machine back.
func (w *world) boot(name string) {
	w.Helper()
	w.change(name, func(n *corev1.Node) {
		n.Status.NodeInfo.BootID += "'"
		w.ready(corev1.ConditionTrue)(n)
	})
}

func (w *world) step(d time.Duration) { w.clock.SetTime(w.clock.Now().Add(d)) }

func (w *world) detach(volume, from string) {
	w.Helper()
	w.must(w.Delete(w.Context(), attachment(volume, from)))
}

func node(name, address string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)},
		Status: corev1.NodeStatus{
			NodeInfo:   corev1.NodeSystemInfo{BootID: "boot-" + name, SystemUUID: "machine-" + name},
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalIP, Address: address}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))}},
		},
	}
}

func clientPod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "rook-ceph", Name: name, Labels: map[string]string{"app": "csi-rbdplugin"}, OwnerReferences: ownedByPlugin()},
		Spec:       corev1.PodSpec{NodeName: node, HostNetwork: true},
	}
}

func storageClass(name, driver, clusterID string) *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: driver,
		Parameters: map[string]string{
			"clusterID": clusterID, "csi.storage.k8s.io/provisioner-secret-name": "rook-csi-rbd-provisioner", "csi.storage.k8s.io/provisioner-secret-namespace": "rook-ceph",
		},
	}
}

func volume(name, driver, clusterID string) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			ClaimRef:    &corev1.ObjectReference{Namespace: "default", Name: "claim-" + name},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
	}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "handle-" + name, VolumeAttributes: map[string]string{"clusterID": clusterID}}
	return pv
}

func attachment(volume, node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "va-" + volume + "-" + node, CreationTimestamp: metav1.NewTime(noon.Add(-time.Minute))},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: rbd, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To(volume)}},
	}
}

// override a gate of node-1 for this incident.
func (w *world) override(gate string) {
	w.Helper()
	record := w.record("node-1")
	record.Annotations = map[string]string{
		fence.OverrideAnnotation:   gate + ": why not",
		fence.OverriddenAnnotation: fence.Override{Gate: gate, By: "eve", Reason: "why not", Scope: record.Status.Incident, At: w.clock.Now()}.Text(),
	}
	w.must(w.Update(w.Context(), record))
}

// drained is node-1, fenced.
func (w *world) drained() {
	w.Helper()
	w.gone("node-1")
	w.look("node-1")
	w.csi()
	w.detach("pvc-a", "node-1")
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeDrained, fence.ReasonDrained)
}

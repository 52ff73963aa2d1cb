package gates

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/fence"
)

const driver, otherDriver = "rook-ceph.cephfs.csi.ceph.com", "ebs.csi.aws.com"

// fixture is the reconciler over a fake API. The pod app waits, node-1 is lost or not.
type fixture struct {
	*testing.T
	client.Client
	r *Reconciler
	// events as "reason: note", patches by the reconciler, and its lists of pods.
	events         []string
	patches, lists int
	// beforePatch runs once, between the reconciler's read and its patch.
	beforePatch func()
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	f := &fixture{T: t}
	scheme, err := cluster.NewScheme()
	f.must(err)
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...)
	for _, i := range cluster.HolderIndexes() {
		builder.WithIndex(i.Object, i.Field, i.Keys)
	}
	api := builder.WithIndex(&corev1.Pod{}, fence.GatedLabel, func(o client.Object) []string { return []string{o.GetLabels()[fence.GatedLabel]} }).Build()
	f.Client = api
	observed := interceptor.NewClient(api, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, pods := list.(*corev1.PodList); pods {
				f.lists++
			}
			return c.List(ctx, list, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			f.patches++
			if f.beforePatch != nil {
				f.beforePatch()
				f.beforePatch = nil
			}
			return c.Patch(ctx, o, patch, opts...)
		},
	})
	policy := fence.Policy{Storages: func(name string) (fence.StoragePolicy, bool) {
		return fence.StoragePolicy{Mode: fence.ModeFence}, name == driver
	}}
	f.r = &Reconciler{Client: observed, Policy: policy, Holders: cluster.NewHolderReader(observed, observed), API: observed, Events: recorder{f}, Log: slog.New(slog.DiscardHandler)}
	return f
}

type recorder struct{ *fixture }

func (r recorder) Eventf(_, _ runtime.Object, _, reason, _, note string, args ...any) {
	r.events = append(r.events, reason+": "+fmt.Sprintf(note, args...))
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

var request = ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: "app"}}

// reconcile returns the pod app as the reconciler leaves the pod.
func (f *fixture) reconcile() *corev1.Pod {
	f.Helper()
	_, err := f.r.Reconcile(f.Context(), request)
	f.must(err)
	var pod corev1.Pod
	f.must(f.Get(f.Context(), request.NamespacedName, &pod))
	return &pod
}

func (f *fixture) mustHaveGates(want ...string) {
	f.Helper()
	var got []string
	for _, g := range f.reconcile().Spec.SchedulingGates {
		got = append(got, g.Name)
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		f.Fatalf("the pod has gates %q, want %q; events: %q", got, want, f.events)
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
	p := pod("app", "", claims...)
	p.Labels = map[string]string{fence.GatedLabel: "true", "app": "x"}
	p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "other.io/gate"}, {Name: fence.SchedulingGate}}
	return p
}

func pod(name, node string, claims ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "uid"}, Spec: corev1.PodSpec{NodeName: node}}
	for _, c := range claims {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: c, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c}}})
	}
	return p
}

// claim of a volume; an empty name is a claim without a volume.
func claim(name, volume string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume}}
}

func volume(name, driver string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: driver, VolumeHandle: "handle-" + name, VolumeAttributes: map[string]string{"clusterID": "rook-ceph"},
		}},
	}}
}

func node(ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: "uid-node-1"},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}},
	}
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
	n := record()
	f.must(f.Get(f.Context(), client.ObjectKeyFromObject(n), n))
	n.Status.Phase, n.Status.Reason = v1alpha1.NodeFenced, fence.ReasonFenced
	n.Status.Fences = []v1alpha1.Fence{{Incident: "incident", Driver: driver, ClusterID: "rook-ceph", State: v1alpha1.FenceFenced}}
	f.must(f.Update(f.Context(), n))
}

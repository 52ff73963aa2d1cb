package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
)

const rbdDriver, cephfsDriver = "rook-ceph.rbd.csi.ceph.com", "rook-ceph.cephfs.csi.ceph.com"

var fencesNoon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func before(d time.Duration) metav1.Time { return metav1.NewTime(fencesNoon.Add(-d)) }

func recordOf(name string, status v1alpha1.NodeFenceStatus) *v1alpha1.NodeFence {
	status.VolumeCount = len(status.Volumes)
	return &v1alpha1.NodeFence{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: status}
}

func clientOf(driver, class, cidr string) v1alpha1.StorageIdentity {
	return v1alpha1.StorageIdentity{Driver: driver, ClusterID: "rook-ceph", Class: class, Addresses: []v1alpha1.ClientAddress{
		{CIDR: cidr, Source: fence.SourceCSIAddonsNode, LastSeen: before(2 * time.Minute)},
	}}
}

// records are nodes in all states that a table has to show.
func records() []client.Object {
	lost := metav1.NewTime(fencesNoon.Add(-7 * time.Minute))
	earlier := clientOf(rbdDriver, "rbd", "10.0.0.2/32")
	earlier.Addresses = append(earlier.Addresses, v1alpha1.ClientAddress{CIDR: "10.0.0.9/32", Source: fence.SourceCSIAddonsNode, LastSeen: before(40 * time.Minute), Earlier: true})
	fenced := v1alpha1.Fence{Name: "fairlead-node-2-cd34-ab12", Driver: rbdDriver, ClusterID: "rook-ceph", Class: "rbd", CIDRs: []string{"10.0.0.2/32", "10.0.0.9/32"}, State: v1alpha1.FenceRequested, Message: "mon is down\x1b[2J"}
	held := v1alpha1.HeldVolume{PersistentVolume: "pvc-b", Driver: rbdDriver, ClusterID: "rook-ceph"}
	shared := v1alpha1.HeldVolume{PersistentVolume: "pvc-c", Driver: cephfsDriver, ClusterID: "rook-ceph", Shared: true, Until: ptr.To(metav1.NewTime(fencesNoon.Add(3 * time.Minute)))}
	silent := v1alpha1.StorageIdentity{Driver: cephfsDriver, ClusterID: "rook-ceph", Secret: &v1alpha1.SecretReference{Name: "csi", Namespace: "rook-ceph"}, Problem: "no client pod is on the node"}
	return []client.Object{
		recordOf("node-1", v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeHealthy, Reason: fence.ReasonReady, Identities: []v1alpha1.StorageIdentity{clientOf(rbdDriver, "rbd", "10.0.0.1/32")},
			Volumes: []v1alpha1.HeldVolume{{PersistentVolume: "pvc-a", Driver: rbdDriver, ClusterID: "rook-ceph"}}}),
		recordOf("node-2", v1alpha1.NodeFenceStatus{
			Phase: v1alpha1.NodeFencing, Reason: fence.ReasonDriverFailed, LostSince: &lost, Message: fence.Linked("rook-ceph.rbd.csi.ceph.com of rook-ceph: mon is down\x1b[2J (asked 3 times; it is asked again)", fence.ReasonDriverFailed),
			Identities: []v1alpha1.StorageIdentity{earlier, silent}, Volumes: []v1alpha1.HeldVolume{held, shared}, Fences: []v1alpha1.Fence{fenced},
		}),
		recordOf("node-3", v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeReturned, Reason: fence.ReasonTainted, Message: fence.Linked("the node has rebooted; to readmit the node: kubectl taint nodes node-3 node.kubernetes.io/out-of-service-", fence.ReasonTainted)}),
		recordOf("node-0", v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeHealthy, Reason: fence.ReasonTaintedButReady}),
	}
}

func fencesClient(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.Client {
	t.Helper()
	scheme, err := cluster.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).Build()
}

func TestFencesAreShown(t *testing.T) {
	live := fencesClient(t, interceptor.Funcs{}, records()...)
	for _, test := range []struct {
		name, output string
		args         []string
	}{
		{"fences.txt", outputTable, nil},
		{"fences-healthy.txt", outputTable, []string{"node-1"}},
		{"fences-fencing.txt", outputTable, []string{"node-2"}},
		{"fences-returned.txt", outputTable, []string{"node-3"}},
		{"fences-fencing.json", outputJSON, []string{"node-2"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out strings.Builder
			if err := showFences(t.Context(), &out, live, test.output, test.args, fencesNoon); err != nil {
				t.Fatal(err)
			}
			golden(t, test.name, out.String())
		})
	}
	if err := showFences(t.Context(), &strings.Builder{}, live, outputTable, []string{"node-9"}, fencesNoon); !errors.Is(err, errNoRecord) {
		t.Errorf("got %v", err)
	}
	var out strings.Builder
	if err := showFences(t.Context(), &out, fencesClient(t, interceptor.Funcs{}), outputTable, nil, fencesNoon); err != nil || !strings.HasPrefix(out.String(), "No NodeFences") {
		t.Errorf("got %v, %s", err, out.String())
	}
}

// A machine that took a fenced one's name has a record of its own.
func TestAllMachinesOfNameAreShown(t *testing.T) {
	live := fencesClient(t, interceptor.Funcs{}, recordOf("node-1", v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeDrained, Reason: fence.ReasonReplaced, NodeName: "node-1"}),
		recordOf("node-1-ab12cd", v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeHealthy, Reason: fence.ReasonReady, NodeName: "node-1"}), recordOf("node-2", v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeHealthy}))
	var out strings.Builder
	if err := showFences(t.Context(), &out, live, outputTable, []string{"node-1"}, fencesNoon); err != nil {
		t.Fatal(err)
	}
	golden(t, "fences-two-machines.txt", out.String())
}

// drillWorld has node-1 with volumes of two drivers, of which the record knows one well.
func drillWorld(record *v1alpha1.NodeFence) []client.Object {
	node := func(name, address string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}}
		n.Status.NodeInfo = corev1.NodeSystemInfo{BootID: "boot-" + name, SystemUUID: "machine-" + name}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: before(time.Hour)}}
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
		return n
	}
	volume := func(name, driver string) *corev1.PersistentVolume {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
		pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "handle-" + name, VolumeAttributes: map[string]string{"clusterID": "rook-ceph"}}
		return pv
	}
	attached := func(name, driver string) *storagev1.VolumeAttachment {
		va := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "va-" + name}}
		va.Spec.Attacher, va.Spec.NodeName, va.Spec.Source.PersistentVolumeName = driver, "node-1", ptr.To(name)
		return va
	}
	one := node("node-1", "192.168.1.1")
	one.Status.VolumesInUse = []corev1.UniqueVolumeName{corev1.UniqueVolumeName(fence.UniqueName(rbdDriver, "handle-pvc-b"))}
	objects := []client.Object{
		one, node("node-2", "10.0.0.2"),
		volume("pvc-a", rbdDriver), volume("pvc-b", rbdDriver), volume("pvc-c", cephfsDriver), attached("pvc-a", rbdDriver), attached("pvc-c", cephfsDriver),
	}
	if record != nil {
		objects = append(objects, record)
	}
	return objects
}

func drillRecord(identities ...v1alpha1.StorageIdentity) *v1alpha1.NodeFence {
	lastHealthy := before(time.Minute)
	return recordOf("node-1", v1alpha1.NodeFenceStatus{
		Phase: v1alpha1.NodeHealthy, Reason: fence.ReasonReady, LastHealthy: &lastHealthy, Identities: identities,
		Node: v1alpha1.MachineIdentity{UID: "uid-node-1", BootID: "boot-node-1", SystemUUID: "machine-node-1"},
	})
}

func drillConfig(t *testing.T) config.Fencing {
	t.Helper()
	c, err := config.Parse([]byte("apiVersion: config.fairlead.io/v1alpha1\nkind: Configuration\nfencing:\n  profiles: [{name: rook-ceph}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	return c.Fencing
}

func drill(t *testing.T, live client.Client, output, node string) (string, error) {
	t.Helper()
	var out strings.Builder
	err := showDrill(t.Context(), &out, live, drillConfig(t), output, node, clocktesting.NewFakePassiveClock(fencesNoon))
	return out.String(), err
}

func TestDrills(t *testing.T) {
	good, cephFS := clientOf(rbdDriver, "rbd", "10.0.0.1/32"), clientOf(cephfsDriver, "cephfs", "10.0.0.1/32")
	taken := clientOf(cephfsDriver, "cephfs", "10.0.0.2/32")
	for _, test := range []struct {
		name, output string
		record       *v1alpha1.NodeFence
		code         error
	}{
		{"drill-fenceable.txt", outputTable, drillRecord(good, cephFS), nil},
		{"drill-fenceable.json", outputJSON, drillRecord(good, cephFS), nil},
		{"drill-unfenceable.txt", outputTable, drillRecord(good, taken), exitUnfenceable},
		{"drill-unfenceable.json", outputJSON, drillRecord(good), exitUnfenceable},
		{"drill-no-record.txt", outputTable, nil, exitUnfenceable},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, err := drill(t, fencesClient(t, interceptor.Funcs{}, drillWorld(test.record)...), test.output, "node-1")
			if !errors.Is(err, test.code) {
				t.Errorf("got %v, want %v", err, test.code)
			}
			golden(t, test.name, out)
		})
	}
}

func TestDrillsThatCannotBeMade(t *testing.T) {
	live := fencesClient(t, interceptor.Funcs{}, append(drillWorld(recordOf("node-1", v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeDrained, Reason: fence.ReasonDrained})), records()[2])...)
	for node, want := range map[string]error{"node-1": errNotHealthy, "node-9": errNoNode} {
		if out, err := drill(t, live, outputTable, node); !errors.Is(err, want) || out != "" {
			t.Errorf("%s: got %v, %s", node, err, out)
		}
	}
	if err := showDrill(t.Context(), &strings.Builder{}, live, config.Fencing{}, outputTable, "node-1", clocktesting.NewFakePassiveClock(fencesNoon)); !errors.Is(err, errNoFencing) {
		t.Errorf("got %v", err)
	}
	if out, err := drill(t, live, outputTable, "node-2"); !errors.Is(err, exitUnfenceable) || !strings.Contains(out, "node node-2 is not on record") {
		t.Errorf("got %v, %s", err, out)
	}
}

func TestWhatFencesMayNotReadIsNamed(t *testing.T) {
	forbidden := fencesClient(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: "fairlead.io", Resource: "nodefences"}, "", errors.New(`User "alice" cannot list resource "nodefences" in API group "fairlead.io" at the cluster scope`))
	}})
	err := explainFences(showFences(t.Context(), &strings.Builder{}, forbidden, outputTable, nil, fencesNoon))
	if err == nil || !strings.HasPrefix(err.Error(), "you may not list nodefences.fairlead.io in the whole cluster; ClusterRole fairlead-fence-viewer allows it") {
		t.Errorf("got %v", err)
	}
	missing := fencesClient(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "fairlead.io", Kind: "NodeFence"}}
	}})
	if err := showFences(t.Context(), &strings.Builder{}, missing, outputTable, nil, fencesNoon); !errors.Is(err, errNoNodeFences) {
		t.Errorf("got %v", err)
	}
}

func TestFencesNeedingPeopleComeFirst(t *testing.T) {
	var shown []string
	var views []fenceView
	for _, o := range records() {
		views = append(views, viewOfFence(o.(*v1alpha1.NodeFence)))
	}
	slices.SortFunc(views, fenceView.before)
	for _, v := range views {
		shown = append(shown, v.Node)
	}
	if want := []string{"node-2", "node-3", "node-0", "node-1"}; !slices.Equal(shown, want) {
		t.Errorf("got %v, want %v", shown, want)
	}
}

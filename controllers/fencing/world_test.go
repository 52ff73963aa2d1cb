package fencing

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/cluster/csiaddons"
	"github.com/fairlead-io/fairlead/internal/cluster/fencing"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

const (
	rbd    = "rook-ceph.rbd.csi.ceph.com"
	cephfs = "rook-ceph.cephfs.csi.ceph.com"
	ours   = "Fenced 192.168.1.1/32" // the fence of node-1
)

var (
	noon   = testkit.Noon
	errAPI = errors.New("the API server fails")
)

// world is the controller over a fake API with two nodes, Rook's client pods on
// them on the host network, and a storage class.
type world struct {
	*testkit.Bench
	r *Reconciler
	// driver answers a NetworkFence; nil is success.
	driver func(*csiaddons.NetworkFence) error
	config config.Fencing
}

func fencingOf(mode config.Switch) config.Fencing {
	return config.Fencing{
		Profiles: []config.FencingProfile{{Name: "rook-ceph", Namespace: "rook-ceph", Mode: mode, Addresses: config.AddressesNode}},
		MaxAge:   metav1.Duration{Duration: fence.DefaultMaxAge}, Returning: config.Returning{ReadyFor: metav1.Duration{Duration: fence.DefaultReadyFor}},
	}
}

func newWorld(t *testing.T, more ...client.Object) *world {
	t.Helper()
	scheme := testkit.Value[*runtime.Scheme](t)(cluster.NewScheme())
	indexes := fakeapi.Indexes{fakeapi.PodsByNode()}
	testkit.Must(t, errors.Join(cluster.IndexClaims(t.Context(), &indexes), fencing.IndexHandles(t.Context(), &indexes),
		(&fencing.FenceReader{}).WithIndexes().IndexAddons(t.Context(), &indexes)))
	for _, i := range fencing.FenceIndexes() {
		indexes = append(indexes, fakeapi.Index(i))
	}
	w := &world{config: fencingOf(config.Fence)}
	w.Bench = testkit.NewBench(t, fakeapi.New(scheme, indexes, &v1alpha1.NodeFence{}, &csiaddons.NetworkFence{}, &corev1.Node{}), append([]client.Object{
		node("node-1", "192.168.1.1"), node("node-2", "192.168.1.2"), clientPod("csi-rbdplugin-1", "node-1"), clientPod("csi-rbdplugin-2", "node-2"),
		storageClass("block", rbd, "rook-ceph"), volume("pvc-a", rbd, "rook-ceph"), attachment("pvc-a", "node-1"),
	}, more...)...)
	w.restart()
	return w
}

// restart begins with a new leader, which remembers nothing.
func (w *world) restart() {
	w.Helper()
	w.NewLeader()
	api := w.Client
	w.r = &Reconciler{
		Client: api, Cached: fencing.NewFenceReader(w.config, api, api, api).WithIndexes(), Live: fencing.NewFenceReader(w.config, api, api, api), API: api,
		Events: w.Events, Clock: w.Clock, Log: w.Log, metrics: testkit.Value[*metrics](w)(newMetrics(w.Registry)),
	}
}

// refuse answers all writes of some verbs with an error, of an object for which it is not nil.
func (w *world) refuse(answer func(client.Object) error, verbs ...string) {
	w.Client.Before = func(write fakeapi.Write) error {
		if slices.Contains(verbs, write.Verb) {
			return answer(write.Object)
		}
		return nil
	}
}

func (w *world) reconcile(node string) (ctrl.Result, error) {
	return w.r.Reconcile(context.Background(), kit.Request(node)[0])
}

// look reconciles nodes, node-1 if none is named.
func (w *world) look(nodes ...string) (result ctrl.Result) {
	w.Helper()
	if len(nodes) == 0 {
		nodes = []string{"node-1"}
	}
	for _, node := range nodes {
		result = testkit.Value[ctrl.Result](w)(w.reconcile(node))
	}
	return result
}

// fails looks at node-1, which ends in an error.
func (w *world) fails() error {
	w.Helper()
	_, err := w.reconcile("node-1")
	if err == nil {
		w.Fatalf("no error")
	}
	return err
}

// csi does what NetworkFences ask for, as csi-addons does.
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
			w.Must(w.Status().Update(context.Background(), &n))
		}
	}
}

// lookAfterCSI looks at node-1 once csi-addons has answered.
func (w *world) lookAfterCSI() { w.Helper(); w.csi(); w.look() }

// finish lets csi-addons and the controller answer each other until nothing is left to do.
func (w *world) finish() {
	w.Helper()
	for range 4 {
		w.look()
		w.csi()
	}
	w.look()
}

func (w *world) fences() []csiaddons.NetworkFence {
	w.Helper()
	var list csiaddons.NetworkFenceList
	w.Must(w.List(context.Background(), &list))
	return list.Items
}

// mustHaveFences compares the NetworkFences as "state CIDRs".
func (w *world) mustHaveFences(want ...string) {
	w.Helper()
	var got []string
	for _, n := range w.fences() {
		got = append(got, n.Spec.FenceState+" "+strings.Join(n.Spec.CIDRs, ","))
	}
	if !slices.Equal(got, want) {
		w.Fatalf("got fences %q, want %q", got, want)
	}
}

func (w *world) mustHaveWritten(want ...string) {
	w.Helper()
	if got := w.Client.Wrote(); !slices.Equal(got, want) {
		w.Fatalf("wrote %q, want %q", got, want)
	}
}

func (w *world) mustHaveEvent(texts ...string) {
	w.Helper()
	if len(w.Events.About(texts...)) == 0 {
		w.Fatalf("no event has %q: %q", texts, w.Events.About())
	}
}

func (w *world) record(name string) *v1alpha1.NodeFence {
	w.Helper()
	record := testkit.Get[v1alpha1.NodeFence](w, w.API, "", name)
	if record == nil {
		w.Fatalf("there is no record %s", name)
	}
	return record
}

// mustBe compares the phase and reason of node-1, and holds its record's label, finalizer and message to them.
func (w *world) mustBe(phase v1alpha1.NodeFencePhase, reason string, texts ...string) v1alpha1.NodeFenceStatus {
	w.Helper()
	return w.recordMustBe("node-1", phase, reason, texts...)
}

func (w *world) recordMustBe(name string, phase v1alpha1.NodeFencePhase, reason string, texts ...string) v1alpha1.NodeFenceStatus {
	w.Helper()
	record := w.record(name)
	s := record.Status
	switch {
	case s.Phase != phase || s.Reason != reason:
		w.Fatalf("%s is %s (%s), want %s (%s): %s", name, s.Phase, s.Reason, phase, reason, s.Message)
	case s.Message != "" && (!strings.HasSuffix(s.Message, fence.Link(s.Reason)) || strings.Count(s.Message, fence.PageOf("")) > 1):
		w.Fatalf("%s is %s (%s), and the message links elsewhere: %s", name, s.Phase, s.Reason, s.Message)
	case record.Labels[fence.PhaseLabel] != fence.PhaseLabelValue(s):
		w.Fatalf("%s is %s and labelled %s", name, phase, record.Labels[fence.PhaseLabel])
	case slices.Contains(record.Finalizers, fence.RecordFinalizer) != fence.Keep(s):
		w.Fatalf("%s is %s, with finalizers %q", name, phase, record.Finalizers)
	}
	for _, text := range texts {
		if !strings.Contains(s.Message, text) {
			w.Fatalf("the message of %s has no %q: %s", name, text, s.Message)
		}
	}
	return s
}

func (w *world) change(name string, how func(*corev1.Node)) {
	w.Helper()
	testkit.Change(w.Bench, "", name, how)
}

func (w *world) node(name string) *corev1.Node {
	w.Helper()
	return testkit.Get[corev1.Node](w, w.API, "", name)
}

func (w *world) ready(status corev1.ConditionStatus) func(*corev1.Node) {
	return objects.Readiness(status, w.Clock.Now())
}

func (w *world) lose(name string) { w.Helper(); w.change(name, w.ready(corev1.ConditionUnknown)) }

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

// loseForGood takes node-1 from healthy to lost and tainted, and looks only before.
func (w *world) loseForGood() {
	w.Helper()
	w.look()
	w.Pass(time.Minute)
	w.lose("node-1")
	w.taint("node-1", "nodeshutdown")
}

// fence loses node-1 and fences the node.
func (w *world) fence() v1alpha1.NodeFenceStatus {
	w.Helper()
	w.loseForGood()
	w.look()
	w.lookAfterCSI()
	return w.mustBe(v1alpha1.NodeFenced, fence.ReasonFenced)
}

// drain fences node-1 and detaches its volume.
func (w *world) drain() {
	w.Helper()
	w.fence()
	w.detach("pvc-a", "node-1")
	w.look()
	w.mustBe(v1alpha1.NodeDrained, fence.ReasonDrained)
}

// boot brings a lost machine back.
func (w *world) boot(name string) {
	w.Helper()
	w.change(name, func(n *corev1.Node) {
		n.Status.NodeInfo.BootID += "'"
		w.ready(corev1.ConditionTrue)(n)
	})
}

// comeBack reboots node-1, removes the taint, and waits until the node may be unfenced.
func (w *world) comeBack() {
	w.Helper()
	w.boot("node-1")
	w.untaint("node-1")
	w.look()
	w.Pass(time.Hour)
}

func (w *world) detach(volume, from string) {
	w.Helper()
	w.Must(w.Delete(context.Background(), attachment(volume, from)))
}

// override a gate of node-1 for this incident.
func (w *world) override(gate string) {
	w.Helper()
	record := w.record("node-1")
	record.Annotations = map[string]string{
		fence.OverrideAnnotation:   gate + ": why not",
		fence.OverriddenAnnotation: fence.Override{Gate: gate, By: "eve", Reason: "why not", Scope: record.Status.Incident, At: w.Clock.Now()}.Text(),
	}
	w.Must(w.Update(context.Background(), record))
}

func node(name, address string) *corev1.Node {
	return objects.Node(name, objects.Readiness(corev1.ConditionTrue, noon.Add(-time.Hour)), func(n *corev1.Node) {
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalIP, Address: address}}
	})
}

func clientPod(name, node string) *corev1.Pod {
	pod := objects.Pod("rook-ceph", name, node)
	pod.Labels, pod.Spec.HostNetwork = map[string]string{"app": "csi-rbdplugin"}, true
	objects.OwnedBy[*corev1.Pod]("apps/v1", "DaemonSet", "csi-rbdplugin")(pod)
	pod.OwnerReferences[0].UID = "uid-csi-rbdplugin"
	return pod
}

func storageClass(name, driver, clusterID string) *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: driver,
		Parameters: map[string]string{
			"clusterID": clusterID, "csi.storage.k8s.io/provisioner-secret-name": "rook-csi-rbd-provisioner", "csi.storage.k8s.io/provisioner-secret-namespace": "rook-ceph",
		},
	}
}

func fenceClass() *csiaddons.NetworkFenceClass {
	return &csiaddons.NetworkFenceClass{ObjectMeta: metav1.ObjectMeta{Name: "rbd"}, Spec: csiaddons.NetworkFenceClassSpec{
		Provisioner: rbd, Parameters: map[string]string{"clusterID": "rook-ceph"},
	}}
}

func volume(name, driver, clusterID string) *corev1.PersistentVolume {
	return objects.Volume(name, driver, "handle-"+name, "claim-"+name, objects.InCluster(clusterID))
}

func attachment(volume, node string) *storagev1.VolumeAttachment {
	return objects.Attachment(volume, node, rbd, func(va *storagev1.VolumeAttachment) {
		va.CreationTimestamp = metav1.NewTime(noon.Add(-time.Minute))
	})
}

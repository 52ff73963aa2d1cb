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
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

const (
	rbd  = objects.RBD
	ours = "Fenced 192.168.1.1/32" // the fence of node-1
)

var (
	noon   = testkit.Noon
	errAPI = errors.New("the API server fails")
	// first and second are the records of node-1's first boot, and of its boot after that.
	first, second = recordOf("node-1", ""), recordOf("node-1", "'")
)

// recordOf is the record of a node's boot: each boot adds a mark to the boot ID.
func recordOf(node, mark string) string {
	return fence.RecordName(node, v1alpha1.Boot{SystemUUID: "machine-" + node, BootID: "boot-" + node + mark})
}

// world is the controller over a fake API with two nodes, Rook's client pods on
// them on the host network, and a storage class.
type world struct {
	*testkit.Bench
	r *Reconciler
	// driver answers a NetworkFence; nil is success.
	driver func(*csiaddons.NetworkFence) error
	config config.Fencing
	// shows is what the watches of volumes show.
	shows client.Reader
	// shown are the Nodes that the watch has shown to this leader.
	shown map[string]*corev1.Node
	// after is when the last look is to be repeated, and err the last error.
	after time.Duration
	err   error
}

func fencingOf(mode config.Switch) config.Fencing {
	return config.Fencing{
		Profiles: []config.FencingProfile{{Name: "rook-ceph", Namespace: "rook-ceph", Mode: mode, Addresses: config.AddressesNode}},
		MaxAge:   metav1.Duration{Duration: fence.DefaultMaxAge}, Returning: config.Returning{ReadyFor: metav1.Duration{Duration: fence.DefaultReadyFor}},
	}
}

func newWorld(t *testing.T, more ...client.Object) *world {
	t.Helper()
	scheme := testkit.Value[*runtime.Scheme](t)(reads.NewScheme())
	indexes := fakeapi.Indexes{fakeapi.PodsByNode()}
	testkit.Must(t, errors.Join(fencingreads.IndexFencing(t.Context(), &indexes), fencingreads.NewFenceReader(config.Fencing{}, nil, nil, nil, nil).IndexAddons(t.Context(), &indexes)))
	w := &world{config: fencingOf(config.Fence)}
	api := fakeapi.New(scheme, indexes, &v1alpha1.NodeFence{}, &csiaddons.NetworkFence{}, &csiaddons.CSIAddonsNode{}, &corev1.Node{})
	api.WithWatch = countGenerations(api.WithWatch)
	w.Bench = testkit.NewBench(t, api, append([]client.Object{
		node("node-1", "192.168.1.1"), node("node-2", "192.168.1.2"), clientPod("node-1"), clientPod("node-2"),
		objects.CephClass("block", rbd, "rook-ceph", "rook-csi-rbd-provisioner"), volume("pvc-a"), attachment("pvc-a", "node-1"),
	}, more...)...)
	w.restart()
	return w
}

// countGenerations counts the changes of each record's spec, as the API server does.
func countGenerations(api client.WithWatch) client.WithWatch {
	return interceptor.NewClient(api, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			o.SetGeneration(1)
			return c.Create(ctx, o, options...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			var was v1alpha1.NodeFence
			if is, ok := o.(*v1alpha1.NodeFence); ok && c.Get(ctx, client.ObjectKeyFromObject(o), &was) == nil {
				if is.Generation = was.Generation; !equality.Semantic.DeepEqual(was.Spec, is.Spec) {
					is.Generation++
				}
			}
			return c.Update(ctx, o, options...)
		},
	})
}

// restart begins with a new leader, which remembers nothing.
func (w *world) restart() *world {
	w.Helper()
	w.NewLeader()
	w.shown = map[string]*corev1.Node{}
	api := w.Client
	w.r = &Reconciler{Client: api, API: api, Events: w.Events, Clock: w.Clock, Log: w.Log, asked: newAsked(), lookAt: func(string) {}}
	w.reads(api, api)
	w.r.metrics = testkit.Value[*metrics](w)(newMetrics(w.Registry, w.r.statuses))
	return w
}

// reads has the controller read objects as its cache, whose watches of volumes have shown all changes when a look begins.
func (w *world) reads(objects, live client.Reader) {
	w.Helper()
	w.shows = w.API // what the watches of volumes read is not counted
	if cache, ok := objects.(*fakeapi.Cache); ok {
		w.shows = cache
	}
	w.r.Held = testkit.Value[*fencingreads.Holdings](w)(fencingreads.ListedHoldings(w.Context(), w.shows, w.config.Protects))
	w.r.Reader = fencingreads.NewFenceReader(w.config, objects, live, func(context.Context) string { return listVersion }, w.r.Held)
}

// watched has the watches of volumes show all changes.
func (w *world) watched() *world { w.Helper(); w.Must(w.r.Held.List(w.Context(), w.shows)); return w }

// refuse answers all writes of some verbs with an error, of an object for which it is not nil.
func (w *world) refuse(answer func(client.Object) error, verbs ...string) *world {
	w.Client.Before = func(write fakeapi.Write) error {
		if slices.Contains(verbs, write.Verb) {
			return answer(write.Object)
		}
		return nil
	}
	return w
}

// reconcile looks at a node until it waits for others. What was overtaken, or waits for the storage's answer, is looked at again at once.
func (w *world) reconcile(node string) (ctrl.Result, error) {
	w.watch(node)
	for range 20 {
		again := false
		w.r.lookAt = func(string) { again = true }
		result, err := w.watched().r.Reconcile(context.Background(), kit.Request(node)[0])
		w.r.asked.running.Wait()
		if err != nil || result.RequeueAfter != behind && !again {
			return result, err
		}
	}
	return ctrl.Result{}, errors.New("the node is never settled")
}

// watch shows the controller a Node, or its deletion.
func (w *world) watch(name string) {
	w.Helper()
	if node := w.node(name); node != nil {
		w.r.observeNodes().Update(event.UpdateEvent{ObjectOld: node, ObjectNew: node})
		w.shown[name] = node
	} else if w.shown[name] != nil {
		w.r.observeNodes().Delete(event.DeleteEvent{Object: w.shown[name]})
		delete(w.shown, name)
	}
}

// look reconciles nodes, node-1 if none is named.
func (w *world) look(nodes ...string) *world {
	w.Helper()
	if len(nodes) == 0 {
		nodes = []string{"node-1"}
	}
	for _, node := range nodes {
		w.after = testkit.Value[ctrl.Result](w)(w.reconcile(node)).RequeueAfter
	}
	return w
}

// fails looks at node-1, which must end in an error.
func (w *world) fails(times int) *world {
	w.Helper()
	for range times {
		_, w.err = w.reconcile("node-1")
		must.True(w, w.err != nil, "no error")
	}
	return w
}

// mustWait compares when the last look is to be repeated.
func (w *world) mustWait(atLeast, atMost time.Duration) *world {
	w.Helper()
	must.True(w, w.after >= atLeast && w.after <= atMost, "looks again after %s, want %s to %s", w.after, atLeast, atMost)
	return w
}

// csi does what NetworkFences ask for, as csi-addons does.
func (w *world) csi() *world {
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
	return w
}

// lookAfterCSI looks at node-1 once csi-addons has answered.
func (w *world) lookAfterCSI() *world { w.Helper(); return w.csi().look() }

// finish lets csi-addons and the controller answer each other until nothing is left to do.
func (w *world) finish() *world {
	w.Helper()
	for range 4 {
		w.look().csi()
	}
	return w.look()
}

func (w *world) fences() []csiaddons.NetworkFence {
	w.Helper()
	var list csiaddons.NetworkFenceList
	w.Must(w.List(context.Background(), &list))
	return list.Items
}

// mustHaveFences compares the NetworkFences as "state CIDRs", in any order.
func (w *world) mustHaveFences(want ...string) *world {
	w.Helper()
	var got []string
	for _, n := range w.fences() {
		got = append(got, n.Spec.FenceState+" "+strings.Join(n.Spec.CIDRs, ","))
	}
	slices.Sort(got)
	must.True(w, slices.Equal(got, want), "got fences %q, want %q", got, want)
	return w
}

func (w *world) mustHaveWritten(want ...string) *world {
	w.Helper()
	got := w.Client.Wrote()
	must.True(w, slices.Equal(got, want), "wrote %q, want %q", got, want)
	return w
}

func (w *world) mustHaveEvent(texts ...string) *world {
	w.Helper()
	must.True(w, len(w.Events.About(texts...)) != 0, "no event has %q: %q", texts, w.Events.About())
	return w
}

func (w *world) record(name string) *v1alpha1.NodeFence {
	w.Helper()
	record := testkit.Get[v1alpha1.NodeFence](w, w.API, "", name)
	must.True(w, record != nil, "there is no record %s", name)
	return record
}

// spec and status of the record of node-1's first boot.
func (w *world) spec() v1alpha1.NodeFenceSpec     { w.Helper(); return w.record(first).Spec }
func (w *world) status() v1alpha1.NodeFenceStatus { w.Helper(); return w.record(first).Status }

// mustBe compares the phase and reason of node-1's first boot, and the rest of its record with them.
func (w *world) mustBe(phase v1alpha1.NodeFencePhase, reason string, texts ...string) *world {
	w.Helper()
	return w.recordMustBe(first, phase, reason, texts...)
}

func (w *world) mustBeHealthy() *world {
	w.Helper()
	return w.mustBe(v1alpha1.NodeHealthy, fence.ReasonReady)
}
func (w *world) mustBeFenced() *world {
	w.Helper()
	return w.mustBe(v1alpha1.NodeFenced, fence.ReasonFenced)
}
func (w *world) mustBeLost() *world {
	w.Helper()
	return w.mustBe(v1alpha1.NodeLost, fence.ReasonNotReady)
}
func (w *world) mustBeFencing() *world {
	w.Helper()
	return w.mustBe(v1alpha1.NodeFencing, fence.ReasonFencing)
}

// mustBeReadmitted: nothing is left of node-1's first boot.
func (w *world) mustBeReadmitted() *world {
	w.Helper()
	w.mustBeForgotten().recordMustBe(second, v1alpha1.NodeHealthy, fence.ReasonReady).mustHaveFences()
	must.True(w, len(w.record(second).Spec.Fences) == 0, "left: %+v", w.record(second).Spec)
	return w
}

func (w *world) mustBeForgotten() *world {
	w.Helper()
	record := testkit.Get[v1alpha1.NodeFence](w, w.API, "", first)
	must.True(w, record == nil, "not forgotten: %+v", record)
	return w
}

func (w *world) recordMustBe(name string, phase v1alpha1.NodeFencePhase, reason string, texts ...string) *world {
	w.Helper()
	record := w.record(name)
	s := record.Status
	switch {
	case s.Phase != phase || s.Reason != reason:
		w.Fatalf("%s is %s (%s), want %s (%s): %s", name, s.Phase, s.Reason, phase, reason, s.Message)
	case s.Message != "" && (!strings.HasSuffix(s.Message, fence.Link(s.Reason)) || strings.Count(s.Message, fence.PageOf("")) > 1):
		w.Fatalf("%s is %s (%s), and the message links elsewhere: %s", name, s.Phase, s.Reason, s.Message)
	case (record.Labels[fence.IncidentLabel] == "true") != fence.InIncident(record.Spec) || record.Labels[fence.NodeLabel] != record.Spec.NodeName:
		w.Fatalf("%s is %s and labelled %v", name, phase, record.Labels)
	case slices.Contains(record.Finalizers, fence.RecordFinalizer) != fence.Keep(record.Spec):
		w.Fatalf("%s is %s, with finalizers %q", name, phase, record.Finalizers)
	case s.ObservedGeneration != record.Generation || len(s.Conditions) != 2:
		w.Fatalf("%s has generation %d, and its status is of %d: %+v", name, record.Generation, s.ObservedGeneration, s.Conditions)
	}
	for _, c := range s.Conditions {
		must.True(w, c.ObservedGeneration == record.Generation, "%s has generation %d, and condition %+v", name, record.Generation, c)
	}
	for _, text := range texts {
		must.True(w, strings.Contains(s.Message, text), "the message of %s has no %q: %s", name, text, s.Message)
	}
	return w
}

// mustHold compares the volumes on the record of node-1's first boot, and mustWithhold those that are attached nowhere else.
func (w *world) mustHold(want ...string) *world {
	w.Helper()
	got := fence.VolumeNames(w.spec().Volumes)
	must.True(w, slices.Equal(got, want), "on record are %q, want %q", got, want)
	return w
}

func (w *world) mustWithhold(want ...string) *world {
	w.Helper()
	record := w.record(first)
	got, labelled := record.Spec.Withheld, record.Labels[fence.IncidentLabel] == "true"
	must.True(w, slices.Equal(got, want) && labelled == (len(want) > 0), "withheld are %q, labelled: %t, want %q", got, labelled, want)
	return w
}

func (w *world) change(name string, how func(*corev1.Node)) *world {
	w.Helper()
	testkit.Change(w.Bench, "", name, how)
	return w
}
func (w *world) move(name, address string) *world {
	w.Helper()
	return w.change(name, func(n *corev1.Node) { n.Status.Addresses[1].Address = address })
}

// recover makes node-1 Ready in the same boot.
func (w *world) recover() *world {
	w.Helper()
	return w.change("node-1", w.ready(corev1.ConditionTrue))
}
func (w *world) pass(d time.Duration) *world { w.Pass(d); return w }
func (w *world) forgetWrites() *world        { w.Client.Writes = nil; return w }
func (w *world) accept() *world              { w.Client.Before = nil; return w }
func (w *world) node(name string) *corev1.Node {
	w.Helper()
	return testkit.Get[corev1.Node](w, w.API, "", name)
}

func (w *world) ready(status corev1.ConditionStatus) func(*corev1.Node) {
	return objects.Readiness(status, w.Clock.Now())
}

func (w *world) lose(name string) *world {
	w.Helper()
	return w.change(name, w.ready(corev1.ConditionUnknown))
}

func (w *world) taint(name, value string) *world {
	w.Helper()
	return w.change(name, func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: fence.OutOfServiceTaint, Value: value, Effect: corev1.TaintEffectNoExecute}}
	})
}

func (w *world) untaint(name string) *world {
	w.Helper()
	return w.change(name, func(n *corev1.Node) { n.Spec.Taints = nil })
}

// loseForGood takes node-1 from healthy to lost and tainted, and looks only before.
func (w *world) loseForGood() *world {
	w.Helper()
	return w.look().pass(time.Minute).lose("node-1").taint("node-1", "nodeshutdown")
}

// fence loses node-1 and fences the node.
func (w *world) fence() *world {
	w.Helper()
	return w.loseForGood().look().lookAfterCSI().mustBeFenced()
}

// drain fences node-1 and detaches its volume.
func (w *world) drain() *world {
	w.Helper()
	return w.fence().detach("pvc-a", "node-1").look().mustBe(v1alpha1.NodeDrained, fence.ReasonDrained)
}

// boot brings a lost machine back.
func (w *world) boot(name string) *world {
	w.Helper()
	return w.change(name, func(n *corev1.Node) {
		n.Status.NodeInfo.BootID += "'"
		w.ready(corev1.ConditionTrue)(n)
	})
}

// returnRebooted reboots node-1, removes the taint, and waits until the node may be unfenced.
func (w *world) returnRebooted() *world {
	w.Helper()
	return w.boot("node-1").untaint("node-1").look().pass(time.Hour)
}
func (w *world) create(o client.Object) *world {
	w.Helper()
	w.Must(w.Create(context.Background(), o))
	return w
}
func (w *world) delete(o client.Object) *world {
	w.Helper()
	w.Must(w.Delete(context.Background(), o))
	return w
}

func (w *world) detach(volume, from string) *world {
	w.Helper()
	return w.delete(attachment(volume, from))
}

// override asks to override a gate of node-1's first boot, as the webhooks admit it.
func (w *world) override(gate string) *world {
	w.Helper()
	record := w.record(first)
	record.Annotations = map[string]string{
		fence.OverrideAnnotation:   gate + ": why not",
		fence.OverriddenAnnotation: fence.Request{Gate: gate, By: "eve", Reason: "why not", At: w.Clock.Now()}.Text(),
	}
	w.Must(w.Update(context.Background(), record))
	return w
}

func node(name, address string) *corev1.Node {
	return objects.Node(name, objects.Readiness(corev1.ConditionTrue, noon.Add(-time.Hour)), func(n *corev1.Node) {
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalIP, Address: address}}
	})
}

func attachment(volume, node string) *storagev1.VolumeAttachment {
	return objects.Attachment(volume, node, rbd, objects.CreatedAt[*storagev1.VolumeAttachment](metav1.NewTime(noon.Add(-time.Minute))))
}

func volume(name string) *corev1.PersistentVolume { return objects.CephVolume(name, rbd, "rook-ceph") }

func clientPod(node string) *corev1.Pod { return objects.ClientPod("csi-rbdplugin", node) }

// secondCluster is a volume of another Ceph cluster on node-1.
func secondCluster() []client.Object {
	return []client.Object{objects.CephClass("second", rbd, "second", "secret"), objects.CephVolume("pvc-b", rbd, "second"), attachment("pvc-b", "node-1")}
}

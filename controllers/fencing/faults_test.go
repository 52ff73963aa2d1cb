package fencing

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/csiaddons"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// What became of Rook's design, fault by fault, where it lives in this layer.

var errAPI = errors.New("the API server is not itself")

// gone takes a node from healthy to lost and tainted, without looking.
func (w *world) gone(name string) {
	w.Helper()
	w.look(name)
	w.step(time.Minute)
	w.lose(name)
	w.taint(name, "nodeshutdown")
}

// fails is a look that ends in an error.
func (w *world) fails(node string) error {
	w.Helper()
	_, err := w.r.Reconcile(w.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: node}})
	if err == nil {
		w.Fatal("no error")
	}
	return err
}

func (w *world) cidrs() []string {
	w.Helper()
	var all []string
	for _, n := range w.fences() {
		all = append(all, n.Spec.FenceState+" "+strings.Join(n.Spec.CIDRs, ","))
	}
	return all
}

func TestAHealthyNodeIsNotFenced(t *testing.T) {
	w := newWorld(t)
	w.look("node-1")
	w.taint("node-1", "nodeshutdown")
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeHealthy, fence.ReasonTaintedButReady)
	if got := w.cidrs(); len(got) != 0 {
		t.Fatalf("fenced: %v", got)
	}
}

// The address is not looked up after the taint: by then it may be somebody else's.
func TestTheAddressIsThatOfBeforeTheLoss(t *testing.T) {
	w := newWorld(t)
	w.gone("node-1")
	w.change("node-1", func(n *corev1.Node) { n.Status.Addresses[1].Address = "192.168.1.77" })
	w.look("node-1")
	if got := w.cidrs(); !slices.Equal(got, []string{"Fenced 192.168.1.1/32"}) {
		t.Fatalf("fenced: %v", got)
	}
}

func TestANodeThatWasNeverSeenHealthyIsNotFencedByAGuess(t *testing.T) {
	w := newWorld(t)
	w.lose("node-1")
	w.taint("node-1", "nodeshutdown")
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeFencing, fence.ReasonNoIdentity)
	if got := w.cidrs(); len(got) != 0 {
		t.Fatalf("fenced: %v", got)
	}
	if !slices.ContainsFunc(w.notes, func(n string) bool { return strings.HasPrefix(n, "*v1.Node Warning NoIdentity") }) {
		t.Errorf("not told on the node: %q", w.notes)
	}
}

func TestANewLedgerIsNotTakenForThatOfAnotherBoot(t *testing.T) {
	w := newWorld(t)
	w.look("node-1")
	w.change("node-1", func(n *corev1.Node) { n.Status.NodeInfo.BootID = "another" })
	w.lose("node-1")
	w.taint("node-1", "nodeshutdown")
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeFencing, fence.ReasonStaleLedger)
}

// A conflict, or an API server that fails, is tried again; what failed is recorded as asked for.
func TestWhatFailsIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	w.gone("node-1")
	w.funcs.Create = func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return errAPI }
	if err := w.fails("node-1"); !errors.Is(err, errAPI) {
		t.Fatal(err)
	}
	s := w.expect("node-1", v1alpha1.NodeFencing, fence.ReasonFencing)
	if len(s.Fences) != 1 || s.Fences[0].State != v1alpha1.FenceRequested {
		t.Fatalf("got %+v", s.Fences)
	}
	w.funcs.Create = nil
	w.restart()
	w.look("node-1")
	w.csi()
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeFenced, fence.ReasonFenced)
}

func TestADriverThatSaysNoIsAskedAnew(t *testing.T) {
	w := newWorld(t)
	w.gone("node-1")
	w.look("node-1")
	w.driver = func(*csiaddons.NetworkFence) error { return errors.New("no quorum") }
	w.csi()
	w.look("node-1")
	s := w.expect("node-1", v1alpha1.NodeFencing, fence.ReasonDriverFailed)
	if !strings.Contains(s.Message, "no quorum") {
		t.Fatalf("got %q", s.Message)
	}
	w.driver = nil
	for range 3 {
		w.step(10 * time.Second)
		w.look("node-1")
	}
	if n := w.fences(); len(n) != 1 || n[0].Status.Result != "" {
		t.Fatalf("got %+v", n)
	}
	w.csi()
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeFenced, fence.ReasonFenced)
}

// Every cluster and driver is fenced; one that fails keeps none of the others.
func TestEveryStorageIdentityIsFencedForItself(t *testing.T) {
	w := newWorld(t, storageClass("second", rbd, "second"), volume("pvc-b", rbd, "second"), attachment("pvc-b", "node-1"))
	w.gone("node-1")
	failing := ""
	w.funcs.Create = func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
		if n, ok := o.(*csiaddons.NetworkFence); ok && (failing == "" || failing == n.Name) {
			failing = n.Name
			return errAPI
		}
		return nil
	}
	if err := w.fails("node-1"); !errors.Is(err, errAPI) {
		t.Fatal(err)
	}
	if len(w.fences()) != 1 || failing == "" {
		t.Fatalf("got %v", w.cidrs())
	}
	w.csi()
	w.fails("node-1")
	s := w.expect("node-1", v1alpha1.NodeFencing, fence.ReasonWriteFailed)
	stands := slices.IndexFunc(s.Fences, func(f v1alpha1.Fence) bool { return f.State == v1alpha1.FenceFenced })
	if len(s.Fences) != 2 || stands < 0 || s.Fences[stands].Name == failing {
		t.Fatalf("got %+v", s.Fences)
	}
	w.funcs.Create = nil
	w.look("node-1")
	w.csi()
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeFenced, fence.ReasonFenced)
	if got := w.fences(); len(got) != 2 || got[0].Spec.Parameters["clusterID"] == got[1].Spec.Parameters["clusterID"] {
		t.Fatalf("got %+v", got)
	}
}

// An object of the name that says Unfenced is no fence: it came to be between the
// look and the write.
func TestAlreadyExistsIsNoSuccess(t *testing.T) {
	w := newWorld(t)
	w.gone("node-1")
	made := 0
	w.funcs.Create = func(ctx context.Context, c client.WithWatch, o client.Object, _ ...client.CreateOption) error {
		n, ok := o.(*csiaddons.NetworkFence)
		if !ok || made > 0 {
			return nil
		}
		made++
		left := n.DeepCopy()
		left.Spec.FenceState = csiaddons.Unfenced
		left.Status = csiaddons.NetworkFenceStatus{Result: "Succeeded", Message: "unfencing operation successful"}
		return c.Create(ctx, left)
	}
	w.look("node-1")
	if s := w.record("node-1").Status; s.Phase != v1alpha1.NodeFencing {
		t.Fatalf("%s although nothing is fenced: %+v", s.Phase, s)
	}
	w.look("node-1")
	if got := w.cidrs(); !slices.Equal(got, []string{"Fenced 192.168.1.1/32"}) {
		t.Fatalf("got %v", got)
	}
	w.csi()
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeFenced, fence.ReasonFenced)
}

func TestTakingTheTaintAwayDoesNotLetANodeInThatHasNotBooted(t *testing.T) {
	w := newWorld(t)
	w.gone("node-1")
	w.look("node-1")
	w.csi()
	w.look("node-1")
	w.untaint("node-1")
	w.change("node-1", w.ready(corev1.ConditionTrue))
	w.step(time.Hour)
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeFenced, fence.ReasonNotRebooted)
	if got := w.cidrs(); !slices.Equal(got, []string{"Fenced 192.168.1.1/32"}) {
		t.Fatalf("got %v", got)
	}
}

// A record that somebody deletes leaks no block: it stays until the node is let in.
func TestADeletedRecordStaysWhileAFenceStands(t *testing.T) {
	w := newWorld(t)
	w.gone("node-1")
	w.look("node-1")
	w.csi()
	w.look("node-1")
	w.must(w.Delete(t.Context(), w.record("node-1")))
	w.look("node-1")
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeFenced, fence.ReasonFenced)
	kept := slices.DeleteFunc(slices.Clone(w.notes), func(n string) bool { return !strings.Contains(n, "Warning Kept") })
	if len(kept) != 1 {
		t.Fatalf("told %d times: %q", len(kept), w.notes)
	}
	if n := w.r.kept.Len(); n != 1 {
		t.Fatalf("remembered are %d", n)
	}
	w.detach("pvc-a", "node-1")
	w.boot("node-1")
	w.untaint("node-1")
	w.look("node-1")
	w.step(time.Hour)
	for range 4 {
		w.look("node-1")
		w.csi()
	}
	s := w.expect("node-1", v1alpha1.NodeHealthy, fence.ReasonReady)
	if len(w.fences()) != 0 || len(s.Fences) != 0 || w.record("node-1").DeletionTimestamp != nil {
		t.Fatalf("left: %v, %+v", w.cidrs(), s)
	}
	if n := w.r.kept.Len(); n != 0 {
		t.Fatalf("remembered are %d", n)
	}
}

func TestADeletedHealthyRecordIsMadeAnew(t *testing.T) {
	w := newWorld(t)
	w.look("node-1")
	w.must(w.Delete(t.Context(), w.record("node-1")))
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeHealthy, fence.ReasonReady)
}

// The node's object is deleted: it stays fenced, and is forgotten only when an
// operator has had it let in.
func TestADeletedNodeStaysFenced(t *testing.T) {
	w := newWorld(t)
	w.drained()
	w.must(w.Delete(w.Context(), node("node-1", "")))
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeDrained, fence.ReasonNodeDeleted)
	w.override(fence.GateUnfence)
	for range 4 {
		w.look("node-1")
		w.csi()
	}
	w.look("node-1")
	if got := w.cidrs(); len(got) != 0 {
		t.Fatalf("left: %v", got)
	}
	if err := w.Get(t.Context(), client.ObjectKey{Name: "node-1"}, &v1alpha1.NodeFence{}); !apierrors.IsNotFound(err) {
		t.Fatalf("not forgotten: %+v (%v)", w.record("node-1"), err)
	}
}

func TestLeftoverSwitchOfRookChangesNothing(t *testing.T) {
	w := newWorld(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "rook-ceph", Name: "rook-ceph-operator-config"}, Data: map[string]string{"ROOK_WATCH_FOR_NODE_FAILURE": "false"}})
	w.gone("node-1")
	w.look("node-1")
	if got := w.cidrs(); len(got) == 0 {
		t.Fatalf("a switch that Rook no longer has keeps the node from being fenced")
	}
}

func missing(list client.ObjectList) error {
	switch list.(type) {
	case *csiaddons.NetworkFenceList, *csiaddons.NetworkFenceClassList, *csiaddons.CSIAddonsNodeList:
		return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: csiaddons.GroupVersion.Group, Kind: "NetworkFence"}, SearchedVersions: []string{"v1alpha1"}}
	}
	return nil
}

// Without csi-addons volumes are held and it is said why; when it comes, it is asked.
func TestWithoutCSIAddonsItIsSaidAndLookedForAgain(t *testing.T) {
	w := newWorld(t)
	w.funcs.List = func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if err := missing(list); err != nil {
			return err
		}
		return c.List(ctx, list, opts...)
	}
	w.gone("node-1")
	result := w.look("node-1")
	s := w.expect("node-1", v1alpha1.NodeFencing, fence.ReasonNoCSIAddons)
	if len(s.Volumes) != 1 || result.RequeueAfter == 0 || result.RequeueAfter > lookForCSIAddons {
		t.Fatalf("got %+v, %v", s, result)
	}
	if !strings.HasSuffix(s.Message, fence.OverrideCommand("node-1", fence.GateAttach)+fence.Link(fence.ReasonNoCSIAddons)) {
		t.Errorf("the message is %q", s.Message)
	}
	w.funcs.List = nil
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeFencing, fence.ReasonFencing)
	w.csi()
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeFenced, fence.ReasonFenced)
}

// A csi-addons that has no classes yet fences by driver and secret.
func TestWithoutClassesItIsFencedByDriverAndSecret(t *testing.T) {
	w := newWorld(t)
	w.funcs.List = func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, classes := list.(*csiaddons.NetworkFenceClassList); classes {
			return missing(list)
		}
		return c.List(ctx, list, opts...)
	}
	w.gone("node-1")
	w.look("node-1")
	w.csi()
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeFenced, fence.ReasonFenced)
	if got := w.fences(); len(got) != 1 || got[0].Spec.Driver != rbd || got[0].Spec.Secret == nil || got[0].Spec.NetworkFenceClassName != "" {
		t.Fatalf("got %+v", got)
	}
}

// What the API server does not take is on the record, in its words, until it does.
func TestWhatCanNotBeWrittenIsSaid(t *testing.T) {
	w := newWorld(t)
	refused := true
	w.funcs.Create = func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
		if _, is := o.(*csiaddons.NetworkFence); is && refused {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "networkfences"}, o.GetName(), errors.New("exceeded quota: fences"))
		}
		return nil
	}
	w.gone("node-1")
	request := ctrl.Request{NamespacedName: types.NamespacedName{Name: "node-1"}}
	for range 3 {
		if _, err := w.r.Reconcile(t.Context(), request); err == nil {
			t.Fatal("it is not tried again")
		}
	}
	s := w.expect("node-1", v1alpha1.NodeFencing, fence.ReasonWriteFailed)
	if !strings.Contains(s.Message, "exceeded quota: fences") {
		t.Errorf("it says %s", s.Message)
	}
	w.writes = nil
	if _, err := w.r.Reconcile(t.Context(), request); err == nil || len(w.writes) != 0 {
		t.Errorf("%v; what is known already is written again: %q", err, w.writes)
	}
	refused = false
	w.look("node-1")
	w.csi()
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeFenced, fence.ReasonFenced)
}

// First recorded, then done: label and finalizer, the status with the fence, then
// the fence, and last what can wait.
func TestNothingIsDoneThatIsNotRecorded(t *testing.T) {
	w := newWorld(t)
	w.gone("node-1")
	w.writes = nil
	w.look("node-1")
	want := []string{"patch *v1alpha1.NodeFence node-1", "update status *v1alpha1.NodeFence node-1", "update status *v1alpha1.NodeFence node-1", "create *csiaddons.NetworkFence " + w.fences()[0].Name, "patch *v1.Node node-1"}
	if !slices.Equal(w.writes, want) {
		t.Fatalf("got  %q\nwant %q", w.writes, want)
	}
	w.writes = nil
	w.csi()
	w.look("node-1")
	w.detach("pvc-a", "node-1")
	w.boot("node-1")
	w.untaint("node-1")
	w.look("node-1")
	w.step(time.Hour)
	name := w.fences()[0].Name
	w.writes = nil
	w.look("node-1")
	// Returned, Unfencing, and only then
	if last := w.writes[len(w.writes)-1]; last != "patch *csiaddons.NetworkFence "+name {
		t.Fatalf("got %q", w.writes)
	}
	w.expect("node-1", v1alpha1.NodeUnfencing, fence.ReasonUnfencing)
}

// Somebody has written the record since it was read: nothing is done on the old one.
func TestAConflictIsLookedAtAgain(t *testing.T) {
	w := newWorld(t)
	w.gone("node-1")
	conflicts := 2
	w.funcs.SubResourceUpdate = func(_ context.Context, _ client.Client, _ string, o client.Object, _ ...client.SubResourceUpdateOption) error {
		if conflicts == 0 {
			return nil
		}
		conflicts--
		return apierrors.NewConflict(schema.GroupResource{Resource: "nodefences"}, o.GetName(), errAPI)
	}
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeFencing, fence.ReasonFencing)
	if len(w.fences()) != 1 || conflicts != 0 {
		t.Fatalf("got %v, %d conflicts left", w.cidrs(), conflicts)
	}
}

// Whichever write fails, and whoever takes over then, it comes to the same end.
func TestACrashAtAnyWriteResumes(t *testing.T) {
	for at := range 40 {
		w := newWorld(t, storageClass("second", rbd, "second"), volume("pvc-b", rbd, "second"), attachment("pvc-b", "node-1"))
		w.gone("node-1")
		writes := 0
		crash := func() error {
			if writes++; writes == at+1 {
				return errAPI
			}
			return nil
		}
		w.funcs.Create = func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return crash() }
		w.funcs.Delete = func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return crash() }
		w.funcs.Patch = func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return crash()
		}
		w.funcs.SubResourceUpdate = func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
			return crash()
		}
		look := func() {
			if _, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "node-1"}}); err != nil {
				w.restart()
			}
			w.csi()
		}
		for range 5 {
			look()
		}
		w.expect("node-1", v1alpha1.NodeFenced, fence.ReasonFenced)
		w.detach("pvc-a", "node-1")
		w.detach("pvc-b", "node-1")
		w.boot("node-1")
		w.untaint("node-1")
		look()
		look()
		w.step(time.Hour)
		for range 6 {
			look()
		}
		if s := w.expect("node-1", v1alpha1.NodeHealthy, fence.ReasonReady); len(w.fences()) != 0 || len(s.Fences) != 0 {
			t.Fatalf("write %d: left %v, %+v", at, w.cidrs(), s.Fences)
		}
		if writes <= at {
			return // there was no such write
		}
	}
	t.Fatal("there were more writes than that")
}

// A leader that hung while it made a NetworkFence makes it when all is over.
func TestAFenceThatComesTooLateIsTakenBack(t *testing.T) {
	w := newWorld(t)
	w.gone("node-1")
	w.look("node-1")
	late := w.fences()[0].DeepCopy()
	w.detach("pvc-a", "node-1")
	w.csi()
	w.look("node-1")
	w.boot("node-1")
	w.untaint("node-1")
	for range 6 {
		w.step(time.Minute)
		w.look("node-1")
		w.csi()
	}
	w.expect("node-1", v1alpha1.NodeHealthy, fence.ReasonReady)
	late.ResourceVersion, late.UID = "", ""
	w.must(w.r.Client.Create(t.Context(), late))
	w.csi()
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeUnfencing, fence.ReasonUnfencing)
	for range 4 {
		w.csi()
		w.look("node-1")
	}
	w.expect("node-1", v1alpha1.NodeHealthy, fence.ReasonReady)
	if got := w.cidrs(); len(got) != 0 {
		t.Fatalf("left: %v", got)
	}
}

// Cluster deletion leaked the blocklist: the storage classes, NetworkFenceClasses and
// PersistentVolumes of the storage cluster are gone while a fence stands. What the
// fence was made with is on record, so it is taken back all the same.
func TestClusterDeletionDoesNotLeakTheBlocklist(t *testing.T) {
	for name, class := range map[string]bool{"with a class": true, "with a secret": false} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			fenceClass := &csiaddons.NetworkFenceClass{ObjectMeta: metav1.ObjectMeta{Name: "rbd"}, Spec: csiaddons.NetworkFenceClassSpec{
				Provisioner: rbd, Parameters: map[string]string{"clusterID": "rook-ceph"},
			}}
			if class {
				objects = append(objects, fenceClass)
			}
			w := newWorld(t, objects...)
			w.gone("node-1")
			w.look("node-1")
			w.csi()
			w.look("node-1")
			s := w.expect("node-1", v1alpha1.NodeFenced, fence.ReasonFenced)
			if len(s.Fences) != 1 || (s.Fences[0].Class != "") != class {
				t.Fatalf("got %+v", s.Fences)
			}
			w.detach("pvc-a", "node-1")
			for _, o := range append(objects, storageClass("block", rbd, "rook-ceph"), volume("pvc-a", rbd, "rook-ceph"), clientPod("csi-rbdplugin-1", "node-1"), clientPod("csi-rbdplugin-2", "node-2")) {
				w.must(w.Delete(t.Context(), o))
			}
			w.restart()
			w.look("node-1")
			if got := w.cidrs(); !slices.Equal(got, []string{"Fenced 192.168.1.1/32"}) {
				t.Fatalf("let in already: %v", got)
			}
			w.boot("node-1")
			w.untaint("node-1")
			w.look("node-1")
			w.step(fence.DefaultReadyFor)
			w.look("node-1")
			if got := w.cidrs(); !slices.Equal(got, []string{"Unfenced 192.168.1.1/32"}) {
				t.Fatalf("leaked: %v, node-1 is %+v", got, w.record("node-1").Status)
			}
			for range 2 {
				w.csi()
				w.look("node-1")
			}
			w.expect("node-1", v1alpha1.NodeHealthy, fence.ReasonReady)
			if got := w.cidrs(); len(got) != 0 {
				t.Fatalf("left: %v", got)
			}
		})
	}
}

// The address of a machine that is gone goes to a new node: both records say so, the
// one on its next look, and no node is listed for those that nothing happened to.
func TestAnAddressOfAGoneMachineIsGivenToANewNode(t *testing.T) {
	w := newWorld(t)
	w.gone("node-1")
	w.look("node-1")
	w.csi()
	w.look("node-1")
	w.detach("pvc-a", "node-1")
	w.must(w.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}))
	if again := w.look("node-1").RequeueAfter; again > unwatched {
		t.Fatalf("looked at again after %s", again)
	}
	w.must(w.Create(t.Context(), node("node-7", "192.168.1.1")))
	w.must(w.Create(t.Context(), clientPod("csi-rbdplugin-7", "node-7")))
	lists := w.liveLists()
	w.look("node-7")
	if s := w.expect("node-7", v1alpha1.NodeHealthy, fence.ReasonAddressInUse); !strings.Contains(s.Message, "nodefence node-1") || *lists != 0 {
		t.Fatalf("%d lists; it says %s", *lists, s.Message)
	}
	w.look("node-1")
	if s := w.expect("node-1", v1alpha1.NodeDrained, fence.ReasonAddressInUse); !strings.Contains(s.Message, "node node-7") || !strings.Contains(s.Message, "unfence") {
		t.Fatalf("it says %s", s.Message)
	}
	if !slices.ContainsFunc(w.notes, func(n string) bool { return strings.HasPrefix(n, "*v1.Node Warning AddressInUse") }) {
		t.Errorf("not told on the node: %q", w.notes)
	}
}

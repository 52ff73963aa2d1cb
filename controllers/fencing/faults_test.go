package fencing

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/csiaddons"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
)

// forbid answers writes of NetworkFences and Nodes.
func forbid(o client.Object) error {
	switch o.(type) {
	case *csiaddons.NetworkFence, *corev1.Node:
		return apierrors.NewForbidden(schema.GroupResource{Resource: "objects"}, o.GetName(), errors.New("exceeded quota"))
	}
	return nil
}

func TestFailedWriteIsRetried(t *testing.T) {
	w := newWorld(t)
	w.loseForGood()
	w.refuse(func(client.Object) error { return errAPI }, "create")
	if err := w.fails(); !errors.Is(err, errAPI) {
		t.Fatal(err)
	}
	if s := w.mustBe(v1alpha1.NodeFencing, fence.ReasonFencing); len(s.Fences) != 1 || s.Fences[0].State != v1alpha1.FenceRequested {
		t.Fatalf("got %+v", s.Fences)
	}
	w.restart()
	w.look()
	w.lookAfterCSI()
	w.mustBe(v1alpha1.NodeFenced, fence.ReasonFenced)
}

func TestFailedDriverIsAskedAgain(t *testing.T) {
	w := newWorld(t)
	w.loseForGood()
	w.look()
	w.driver = func(*csiaddons.NetworkFence) error { return errors.New("no quorum") }
	w.lookAfterCSI()
	w.mustBe(v1alpha1.NodeFencing, fence.ReasonDriverFailed, "no quorum")
	w.driver = nil
	for range 3 {
		w.Pass(10 * time.Second)
		w.look()
	}
	if n := w.fences(); len(n) != 1 || n[0].Status.Result != "" {
		t.Fatalf("got %+v", n)
	}
	w.lookAfterCSI()
	w.mustBe(v1alpha1.NodeFenced, fence.ReasonFenced)
}

func TestFailureOfOneStorageIdentityStopsNoOther(t *testing.T) {
	w := newWorld(t, storageClass("second", rbd, "second"), volume("pvc-b", rbd, "second"), attachment("pvc-b", "node-1"))
	w.loseForGood()
	failing := ""
	w.refuse(func(o client.Object) error {
		if n, ok := o.(*csiaddons.NetworkFence); ok && (failing == "" || failing == n.Name) {
			failing = n.Name
			return errAPI
		}
		return nil
	}, "create")
	if err := w.fails(); !errors.Is(err, errAPI) {
		t.Fatal(err)
	}
	w.mustHaveFences(ours)
	w.csi()
	_ = w.fails()
	s := w.mustBe(v1alpha1.NodeFencing, fence.ReasonWriteFailed)
	for _, f := range s.Fences {
		if (f.State == v1alpha1.FenceFenced) != (f.Name != failing) {
			t.Errorf("got %+v", f)
		}
	}
	w.Client.Before = nil
	w.look()
	w.lookAfterCSI()
	w.mustBe(v1alpha1.NodeFenced, fence.ReasonFenced)
	if got := w.fences(); len(got) != 2 || got[0].Spec.Parameters["clusterID"] == got[1].Spec.Parameters["clusterID"] {
		t.Fatalf("got %+v", got)
	}
}

// Between look and write, a NetworkFence of the name appears that says Unfenced.
func TestExistingNetworkFenceIsNotTakenForSuccess(t *testing.T) {
	w := newWorld(t)
	w.loseForGood()
	created := false
	w.refuse(func(o client.Object) error {
		n, ok := o.(*csiaddons.NetworkFence)
		if !ok || created {
			return nil
		}
		created = true
		left := n.DeepCopy()
		left.Spec.FenceState = csiaddons.Unfenced
		left.Status = csiaddons.NetworkFenceStatus{Result: "Succeeded", Message: "unfencing operation successful"}
		return w.Seed(t.Context(), left)
	}, "create")
	w.look()
	if s := w.record("node-1").Status; s.Phase != v1alpha1.NodeFencing {
		t.Fatalf("%s although nothing is fenced: %+v", s.Phase, s)
	}
	w.look()
	w.mustHaveFences(ours)
	w.lookAfterCSI()
	w.mustBe(v1alpha1.NodeFenced, fence.ReasonFenced)
}

func missing(o runtime.Object) error {
	switch o.(type) {
	case *csiaddons.NetworkFenceList, *csiaddons.NetworkFenceClassList, *csiaddons.CSIAddonsNodeList:
		return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: csiaddons.GroupVersion.Group, Kind: "NetworkFence"}, SearchedVersions: []string{"v1alpha1"}}
	}
	return nil
}

func TestMissingCSIAddonsIsReportedUntilItIsInstalled(t *testing.T) {
	w := newWorld(t)
	w.Client.Reading = missing
	w.loseForGood()
	after := w.look().RequeueAfter
	s := w.mustBe(v1alpha1.NodeFencing, fence.ReasonNoCSIAddons, fence.OverrideCommand("node-1", fence.GateAttach)+fence.Link(fence.ReasonNoCSIAddons))
	if len(s.Volumes) != 1 || after == 0 || after > lookForCSIAddons {
		t.Fatalf("got %+v, %v", s, after)
	}
	w.Client.Reading = nil
	w.look()
	w.mustBe(v1alpha1.NodeFencing, fence.ReasonFencing)
	w.lookAfterCSI()
	w.mustBe(v1alpha1.NodeFenced, fence.ReasonFenced)
}

func TestOldCSIAddonsFencesByDriverAndSecret(t *testing.T) {
	w := newWorld(t)
	w.Client.Reading = func(o runtime.Object) error {
		if _, classes := o.(*csiaddons.NetworkFenceClassList); classes {
			return missing(o)
		}
		return nil
	}
	w.fence()
	if got := w.fences(); len(got) != 1 || got[0].Spec.Driver != rbd || got[0].Spec.Secret == nil || got[0].Spec.NetworkFenceClassName != "" {
		t.Fatalf("got %+v", got)
	}
}

func TestRefusedWriteIsReportedOnce(t *testing.T) {
	w := newWorld(t)
	w.refuse(forbid, "create")
	w.loseForGood()
	for range 3 {
		_ = w.fails()
	}
	w.mustBe(v1alpha1.NodeFencing, fence.ReasonWriteFailed, "exceeded quota")
	w.Client.Writes = nil
	_ = w.fails()
	w.mustHaveWritten()
	w.Client.Before = nil
	w.look()
	w.lookAfterCSI()
	w.mustBe(v1alpha1.NodeFenced, fence.ReasonFenced)
}

// Later looks read some reasons: a failed write is reported beside them.
func TestFailedWriteKeepsReasonsThatAreReadLater(t *testing.T) {
	fences := func(name, state string) []v1alpha1.Fence {
		return []v1alpha1.Fence{{Name: name, Incident: "node-1-1", Driver: rbd, ClusterID: "rook-ceph", CIDRs: []string{"192.168.1.9/32"}, State: state}}
	}
	record := func(name string, s v1alpha1.NodeFenceStatus) *v1alpha1.NodeFence {
		return &v1alpha1.NodeFence{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{fence.RecordFinalizer}}, Status: s}
	}
	before := ptr.To(metav1.NewTime(noon.Add(-time.Hour)))
	for name, test := range map[string]struct {
		prepare func(*world)
		phase   v1alpha1.NodeFencePhase
		reason  string
	}{
		"removing a taint": {func(w *world) { // volumes may have been detached by force
			w.look()
			w.taint("node-1", fence.OwnTaintValue)
		}, v1alpha1.NodeHealthy, fence.ReasonTaintedButReady},
		"withdrawing a shared fence": {func(w *world) { // nodes that wait for each other are readmitted together
			n := &csiaddons.NetworkFence{ObjectMeta: metav1.ObjectMeta{Name: "asked"}}
			n.Spec.FenceState, n.Spec.CIDRs = csiaddons.Fenced, []string{"192.168.1.9/32"}
			for _, o := range []client.Object{n, record("node-1", v1alpha1.NodeFenceStatus{
				Phase: v1alpha1.NodeReturned, Reason: fence.ReasonSettling, Incident: "node-1-1", Fences: fences("asked", v1alpha1.FenceRequested),
				Node:       v1alpha1.MachineIdentity{UID: "uid-node-1", BootID: "boot-node-1", SystemUUID: "machine-node-1"},
				ReadySince: before, ReadyChanged: before,
			}), record("node-3", v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeDrained, Reason: fence.ReasonNodeDeleted, Incident: "node-3-1", Fences: fences("theirs", v1alpha1.FenceFenced)})} {
				w.Must(w.Seed(t.Context(), o))
			}
		}, v1alpha1.NodeUnfencing, fence.ReasonSharedAddress},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			test.prepare(w)
			w.refuse(forbid, "patch", "delete")
			for range 3 {
				_ = w.fails()
			}
			w.mustBe(test.phase, test.reason, "exceeded quota", "; ")
			w.Client.Writes = nil
			_ = w.fails()
			w.mustHaveWritten()
		})
	}
}

// First the label and finalizer, then the status with the fence, then the fence, and last the mark.
func TestNothingIsDoneBeforeItIsRecorded(t *testing.T) {
	w := newWorld(t)
	w.loseForGood()
	w.Client.Writes = nil
	w.look()
	name := w.fences()[0].Name
	w.mustHaveWritten("patch NodeFence/node-1", "update/status NodeFence/node-1", "update/status NodeFence/node-1", "create NetworkFence/"+name, "patch Node/node-1")
	w.lookAfterCSI()
	w.detach("pvc-a", "node-1")
	w.comeBack()
	w.Client.Writes = nil
	w.look()
	if wrote := w.Client.Wrote(); len(wrote) < 3 || wrote[len(wrote)-1] != "patch NetworkFence/"+name { // after Returned and Unfencing
		t.Fatalf("got %q", wrote)
	}
	w.mustBe(v1alpha1.NodeUnfencing, fence.ReasonUnfencing)
}

func TestConflictLeadsToAnotherLook(t *testing.T) {
	w := newWorld(t)
	w.loseForGood()
	conflicts := 2
	w.refuse(func(o client.Object) error {
		if conflicts == 0 {
			return nil
		}
		conflicts--
		return apierrors.NewConflict(schema.GroupResource{Resource: "nodefences"}, o.GetName(), errAPI)
	}, "update/status")
	w.look()
	w.mustBe(v1alpha1.NodeFencing, fence.ReasonFencing)
	w.mustHaveFences(ours)
}

// Wherever a write fails or the leader crashes, the incident ends the same way.
func TestCrashAtAnyWriteResumes(t *testing.T) {
	for _, done := range []bool{false, true} {
		for at := range 41 {
			w := newWorld(t, storageClass("second", rbd, "second"), volume("pvc-b", rbd, "second"), attachment("pvc-b", "node-1"))
			w.loseForGood()
			w.Client.CrashAt(at, done)
			crashed := false
			look := func() {
				if _, err := w.reconcile("node-1"); err != nil {
					crashed = crashed || errors.Is(err, fakeapi.ErrCrashed)
					w.restart()
				}
				w.csi()
			}
			for range 5 {
				look()
			}
			w.mustBe(v1alpha1.NodeFenced, fence.ReasonFenced)
			w.detach("pvc-a", "node-1")
			w.detach("pvc-b", "node-1")
			w.boot("node-1")
			w.untaint("node-1")
			look()
			look()
			w.Pass(time.Hour)
			for range 6 {
				look()
			}
			w.mustHaveFences()
			if s := w.mustBe(v1alpha1.NodeHealthy, fence.ReasonReady); len(s.Fences) != 0 {
				t.Fatalf("write %d, done: %t: left %+v", at, done, s.Fences)
			}
			if !crashed {
				break // there was no such write
			}
			if at == 40 {
				t.Fatal("there were more writes")
			}
		}
	}
}

func (w *world) mustHaveMark(want string) {
	w.Helper()
	if got := w.node("node-1").Annotations[fence.RecordedLossAnnotation]; got != want {
		w.Fatalf("node-1 is marked %q, want %q", got, want)
	}
}

func TestNodeIsMarkedOnceItsLossIsRecorded(t *testing.T) {
	const loss = "boot-node-1@2026-01-01T12:00:00Z"
	w := newWorld(t)
	w.look()
	w.mustHaveMark("")
	w.lose("node-1")
	w.look()
	w.mustBe(v1alpha1.NodeLost, fence.ReasonNotReady)
	w.mustHaveMark("") // the loss was not recorded when the node was read
	w.look()
	w.mustHaveMark(loss + " pvc-a")
	w.Client.Writes = nil
	w.look()
	w.mustHaveWritten()
	w.taint("node-1", "nodeshutdown")
	w.look()
	w.lookAfterCSI()
	w.mustHaveMark(loss)
	w.boot("node-1")
	w.untaint("node-1")
	w.look()
	w.mustHaveMark("")
}

func TestChangedNodeIsNotMarked(t *testing.T) {
	w := newWorld(t)
	w.look()
	w.lose("node-1")
	w.look()
	w.refuse(func(client.Object) error {
		w.Client.Before = nil
		w.Pass(time.Second)
		w.change("node-1", w.ready(corev1.ConditionTrue))
		return nil
	}, "patch")
	w.look()
	w.mustHaveMark("")
}

func TestMarkIsOptional(t *testing.T) {
	w := newWorld(t)
	w.look()
	w.lose("node-1")
	tries := 0
	w.refuse(func(o client.Object) error {
		err := forbid(o)
		if err != nil {
			tries++
		}
		return err
	}, "patch")
	for range 4 {
		w.look()
	}
	if tries != 1 {
		t.Errorf("tried %d times", tries)
	}
	w.Pass(refresh)
	w.look()
	if tries != 2 {
		t.Errorf("tried %d times after a while", tries)
	}
	w.mustBe(v1alpha1.NodeLost, fence.ReasonNotReady)
}

func TestLongEventsKeepTheLinkToTheirReason(t *testing.T) {
	w := newWorld(t)
	w.look()
	for _, name := range strings.Fields("b c d e f g h") { // one storage cluster each, without an address on record
		w.Must(w.Create(t.Context(), volume("pvc-"+name, rbd, "cluster-"+name)))
		w.Must(w.Create(t.Context(), attachment("pvc-"+name, "node-1")))
	}
	w.lose("node-1")
	w.taint("node-1", "nodeshutdown")
	w.look()
	w.look()
	if s := w.mustBe(v1alpha1.NodeFencing, fence.ReasonNoIdentity); len(s.Message) < 1500 {
		t.Fatalf("the message is short: %s", s.Message)
	}
	if got := w.Events.About("..." + fence.Link(fence.ReasonNoIdentity)); len(got) != 2 {
		t.Errorf("%d events link to the reason: %q", len(got), w.Events.Notes())
	}
}

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
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
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
	w := newWorld(t).loseForGood().refuse(func(client.Object) error { return errAPI }, "create")
	must.True(t, errors.Is(w.fails(1).err, errAPI), "%v", w.err)
	s := w.mustBe(v1alpha1.NodeFencing, fence.ReasonWriteFailed, errAPI.Error()).status()
	must.True(t, len(s.Fences) == 1 && s.Fences[0].State == v1alpha1.FenceRequested, "got %+v", s.Fences)
	w.restart().look().lookAfterCSI().mustBeFenced()
}

func TestFailedDriverIsAskedAgain(t *testing.T) {
	w := newWorld(t).loseForGood().look()
	w.driver = func(*csiaddons.NetworkFence) error { return errors.New("no quorum") }
	w.lookAfterCSI().mustBe(v1alpha1.NodeFencing, fence.ReasonDriverFailed, "no quorum")
	w.driver = nil
	for range 3 {
		w.pass(10 * time.Second).look()
	}
	n := w.fences()
	must.True(t, len(n) == 1 && n[0].Status.Result == "", "got %+v", n)
	w.lookAfterCSI().mustBeFenced()
}

func TestFailureOfOneStorageIdentityStopsNoOther(t *testing.T) {
	w := newWorld(t, secondCluster()...).loseForGood()
	failing := ""
	w.refuse(func(o client.Object) error {
		if n, ok := o.(*csiaddons.NetworkFence); ok && (failing == "" || failing == n.Name) {
			failing = n.Name
			return errAPI
		}
		return nil
	}, "create")
	must.True(t, errors.Is(w.fails(1).err, errAPI), "%v", w.err)
	w.mustHaveFences(ours).csi().fails(1)
	for _, f := range w.mustBe(v1alpha1.NodeFencing, fence.ReasonWriteFailed).status().Fences {
		must.True(t, (f.State == v1alpha1.FenceFenced) == (f.Name != failing), "got %+v", f)
	}
	w.accept().look().lookAfterCSI().mustBeFenced()
	got := w.fences()
	must.True(t, len(got) == 2 && got[0].Spec.Parameters["clusterID"] != got[1].Spec.Parameters["clusterID"], "got %+v", got)
}

// Between look and write, a NetworkFence of the name appears that says Unfenced.
func TestExistingNetworkFenceIsNotTakenForSuccess(t *testing.T) {
	w := newWorld(t).loseForGood()
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
	s := w.look().status()
	must.True(t, s.Phase == v1alpha1.NodeFencing, "%s although nothing is fenced: %+v", s.Phase, s)
	w.look().mustHaveFences(ours).lookAfterCSI().mustBeFenced()
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
	w.loseForGood().look().mustHold("pvc-a").mustBe(v1alpha1.NodeFencing, fence.ReasonNoCSIAddons, fence.OverrideCommand("node-1", fence.GateAttach)+fence.Link(fence.ReasonNoCSIAddons))
	w.mustWait(1, lookForCSIAddons).Client.Reading = nil
	w.look().mustBeFencing().lookAfterCSI().mustBeFenced()
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
	got := w.fences()
	must.True(t, len(got) == 1 && got[0].Spec.Driver == rbd && got[0].Spec.Secret != nil && got[0].Spec.NetworkFenceClassName == "", "got %+v", got)
}

func TestRefusedWriteIsReportedOnce(t *testing.T) {
	w := newWorld(t).refuse(forbid, "create").loseForGood().fails(3)
	w.mustBe(v1alpha1.NodeFencing, fence.ReasonWriteFailed, "exceeded quota").forgetWrites().fails(1).mustHaveWritten()
	w.accept().look().lookAfterCSI().mustBeFenced()
	must.Equal(t, w.status().LastError, "")
}

// The mark of a Node is optional: its denial keeps no error of another write on record, and no node is looked at all the time.
func TestDeniedMarkKeepsNoError(t *testing.T) {
	marks := func(o client.Object) error {
		if _, isNode := o.(*corev1.Node); isNode {
			return forbid(o)
		}
		return nil
	}
	w := newWorld(t).look().refuse(func(o client.Object) error {
		if _, isFence := o.(*csiaddons.NetworkFence); isFence {
			return forbid(o)
		}
		return marks(o)
	}, "create", "patch").lose("node-1").look().taint("node-1", "nodeshutdown").fails(3)
	w.mustBe(v1alpha1.NodeFencing, fence.ReasonWriteFailed).refuse(marks, "patch")
	w.look().lookAfterCSI().mustBeFenced()
	must.Equal(t, w.status().LastError, "")
	w.look()
	must.True(t, w.after > time.Second, "looks again after %s", w.after)
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
		"removing a taint": {func(w *world) { w.look().taint("node-1", fence.OwnTaintValue) }, v1alpha1.NodeHealthy, fence.ReasonTaintedButReady},
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
			w.refuse(forbid, "patch", "delete").fails(3).mustBe(test.phase, test.reason).forgetWrites()
			must.True(t, strings.Contains(w.status().LastError, "exceeded quota"), "got %q", w.status().LastError)
			w.fails(1).mustHaveWritten()
		})
	}
}

// First the label and finalizer, then the status with the fence, then the fence, and last the mark.
func TestNothingIsDoneBeforeItIsRecorded(t *testing.T) {
	w := newWorld(t).loseForGood().forgetWrites().look()
	name := w.fences()[0].Name
	w.mustHaveWritten("patch NodeFence/node-1", "update/status NodeFence/node-1", "create NetworkFence/"+name, "patch Node/node-1")
	w.lookAfterCSI().detach("pvc-a", "node-1").returnRebooted().forgetWrites().look()
	if wrote := w.Client.Wrote(); len(wrote) < 3 || wrote[len(wrote)-1] != "patch NetworkFence/"+name { // after Returned and Unfencing
		t.Fatalf("got %q", wrote)
	}
	w.mustBe(v1alpha1.NodeUnfencing, fence.ReasonUnfencing)
}

func TestConflictLeadsToAnotherLook(t *testing.T) {
	w := newWorld(t).loseForGood()
	conflicts := 2
	w.refuse(func(o client.Object) error {
		if conflicts == 0 {
			return nil
		}
		conflicts--
		return apierrors.NewConflict(schema.GroupResource{Resource: "nodefences"}, o.GetName(), errAPI)
	}, "update/status")
	w.look().mustBeFencing().mustHaveFences(ours)
}

// Wherever a write fails or the leader crashes, the incident ends the same way.
func TestCrashAtAnyWriteResumes(t *testing.T) {
	for _, done := range []bool{false, true} {
		for at := range 41 {
			w := newWorld(t, secondCluster()...).loseForGood()
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
			w.mustBeFenced().detach("pvc-a", "node-1").detach("pvc-b", "node-1").boot("node-1").untaint("node-1")
			look()
			look()
			w.pass(time.Hour)
			for range 6 {
				look()
			}
			w.mustHaveFences()
			s := w.mustBeHealthy().status()
			must.True(t, len(s.Fences) == 0, "write %d, done: %t: left %+v", at, done, s.Fences)
			if !crashed {
				break // there was no such write
			}
			must.True(t, at != 40, "there were more writes")
		}
	}
}

func (w *world) mustHaveMark(want string) *world {
	w.Helper()
	got := w.node("node-1").Annotations[fence.RecordedLossAnnotation]
	must.True(w, got == want, "node-1 is marked %q, want %q", got, want)
	return w
}

func TestNodeIsMarkedOnceItsLossIsRecorded(t *testing.T) {
	const loss = "boot-node-1@2026-01-01T12:00:00Z"
	w := newWorld(t).look().mustHaveMark("").lose("node-1").look().mustBeLost()
	w.mustHaveMark(loss+" pvc-a").forgetWrites().look().mustHaveWritten().taint("node-1", "nodeshutdown").look()
	w.lookAfterCSI().mustHaveMark(loss).boot("node-1").untaint("node-1").look().mustHaveMark("")
}

func TestChangedNodeIsNotMarked(t *testing.T) {
	w := newWorld(t).look().lose("node-1")
	w.refuse(func(o client.Object) error {
		if _, isNode := o.(*corev1.Node); isNode {
			w.accept().pass(time.Second).recover()
		}
		return nil
	}, "patch")
	w.look().mustHaveMark("")
}

func TestMarkIsOptional(t *testing.T) {
	w := newWorld(t).look().lose("node-1")
	tries := 0
	w.refuse(func(o client.Object) error {
		if _, isNode := o.(*corev1.Node); isNode {
			tries++
		}
		return forbid(o)
	}, "patch")
	w.look().mustBeLost()
	must.True(t, tries == 1 && w.after == unwatched, "tried %d times, looks again after %s", tries, w.after)
}

func TestLongEventsKeepTheLinkToTheirReason(t *testing.T) {
	w := newWorld(t).look()
	for _, name := range strings.Fields("b c d e f g h") { // one storage cluster each, without an address on record
		w.create(objects.CephVolume("pvc-"+name, rbd, "cluster-"+name)).create(attachment("pvc-"+name, "node-1"))
	}
	w.lose("node-1").taint("node-1", "nodeshutdown").look().look()
	s := w.mustBe(v1alpha1.NodeFencing, fence.ReasonNoIdentity).status()
	must.True(t, len(s.Message) >= 1500, "the message is short: %s", s.Message)
	got := w.Events.About("..." + fence.Link(fence.ReasonNoIdentity))
	must.True(t, len(got) == 2, "%d events link to the reason: %q", len(got), w.Events.Notes())
}

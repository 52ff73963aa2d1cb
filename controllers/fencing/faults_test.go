package fencing

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	s := w.mustBe(v1alpha1.NodeFencing, fence.ReasonWriteFailed, errAPI.Error()).spec()
	must.True(t, len(s.Fences) == 1 && s.Fences[0].State == v1alpha1.FenceRequested, "got %+v", s.Fences)
	w.restart().look().lookAfterCSI().mustBeFenced()
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
	for _, f := range w.mustBe(v1alpha1.NodeFencing, fence.ReasonWriteFailed).spec().Fences {
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
	w.loseForGood().look().mustHold("pvc-a").mustBe(v1alpha1.NodeFencing, fence.ReasonNoCSIAddons, fence.OverrideCommand(first, fence.GateAttach)+fence.Link(fence.ReasonNoCSIAddons))
	w.mustWait(1, lookForCSIAddons).Client.Reading = nil
	w.look().mustBeFencing().lookAfterCSI().mustBeFenced()
}

func TestRefusedWriteIsReportedOnce(t *testing.T) {
	w := newWorld(t).refuse(forbid, "create").loseForGood().fails(3)
	w.mustBe(v1alpha1.NodeFencing, fence.ReasonWriteFailed, "exceeded quota").forgetWrites().fails(1).mustHaveWritten()
	w.accept().look().lookAfterCSI().mustBeFenced()
	must.Equal(t, w.status().LastError, "")
}

// Why a taint stays says more than that a write failed, which is reported beside it.
func TestFailedWriteIsReportedBesideOtherReasons(t *testing.T) {
	w := newWorld(t).look().taint("node-1", fence.OwnTaintValue).refuse(forbid, "patch").fails(3).mustBe(v1alpha1.NodeHealthy, fence.ReasonTaintedButReady)
	must.True(t, strings.Contains(w.status().LastError, "exceeded quota"), "got %q", w.status().LastError)
	w.forgetWrites().fails(1).mustHaveWritten().accept().look()
	must.Equal(t, w.status().LastError, "")
}

// First the memory with label and finalizer, then the fence, then the mark, and last the status.
func TestNothingIsDoneBeforeItIsRecorded(t *testing.T) {
	w := newWorld(t).loseForGood().forgetWrites().look()
	name := w.fences()[0].Name
	w.mustHaveWritten("update NodeFence/"+first, "create NetworkFence/"+name, "patch Node/node-1", "update/status NodeFence/"+first)
	w.lookAfterCSI().detach("pvc-a", "node-1").returnRebooted().forgetWrites().look()
	wrote := slices.DeleteFunc(w.Client.Wrote(), func(write string) bool { return strings.HasSuffix(write, second) })
	must.Equal(t, wrote, []string{"update NodeFence/" + first, "patch NetworkFence/" + name, "update/status NodeFence/" + first})
	w.mustBe(v1alpha1.NodeUnfencing, fence.ReasonUnfencing)
}

func TestConflictLeadsToAnotherLook(t *testing.T) {
	for _, verb := range []string{"update", "update/status"} {
		w := newWorld(t).loseForGood()
		conflicts := 2
		w.refuse(func(o client.Object) error {
			if conflicts == 0 {
				return nil
			}
			conflicts--
			return apierrors.NewConflict(schema.GroupResource{Resource: "nodefences"}, o.GetName(), errAPI)
		}, verb)
		w.look().mustBeFencing().mustHaveFences(ours)
		must.Equal(t, conflicts, 0)
	}
}

// Wherever a write fails or the leader crashes, the incident ends the same way, and what a person says is carried out.
func TestCrashAtAnyWriteResumes(t *testing.T) {
	for name, end := range map[string]func(w *world, look func()){
		"the node reboots": func(w *world, look func()) {
			w.boot("node-1").untaint("node-1")
			look()
			look()
			w.pass(time.Hour)
			for range 6 {
				look()
			}
			w.mustBeReadmitted()
		},
		"a person gives up the machine": func(w *world, look func()) {
			w.delete(node("node-1", ""))
			look()
			look()
			w.override(fence.GateUnfence)
			for range 6 {
				look()
			}
			w.mustBeForgotten().mustHaveFences()
		},
	} {
		for _, done := range []bool{false, true} {
			for at, crashed := 0, true; crashed; at++ { // until there is no such write
				w := newWorld(t, secondCluster()...).loseForGood()
				w.Client.CrashAt(at, done)
				crashed = false
				look := func() {
					if _, err := w.reconcile("node-1"); err != nil {
						must.True(t, errors.Is(err, fakeapi.ErrCrashed), "%s, write %d: %v", name, at, err)
						crashed = true
						w.restart()
					}
					w.csi()
				}
				for range 5 {
					look()
				}
				w.mustBeFenced().detach("pvc-a", "node-1").detach("pvc-b", "node-1")
				end(w, look)
			}
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

// Its denial is no error: it keeps none of another write on record, and the node is not looked at all the time.
func TestMarkIsOptional(t *testing.T) {
	w, tries := newWorld(t).look(), 0
	marks := func(o client.Object) error {
		if _, isNode := o.(*corev1.Node); !isNode {
			return nil
		}
		tries++
		return forbid(o)
	}
	w.lose("node-1").refuse(marks, "patch").look().mustBeLost().mustWait(unwatched, unwatched)
	must.Equal(t, tries, 1)
	w.taint("node-1", "nodeshutdown").refuse(forbid, "create", "patch").fails(1).mustBe(v1alpha1.NodeFencing, fence.ReasonWriteFailed)
	w.refuse(marks, "patch").look().lookAfterCSI().mustBeFenced().look().mustWait(time.Second, unwatched)
	must.Equal(t, w.status().LastError, "")
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

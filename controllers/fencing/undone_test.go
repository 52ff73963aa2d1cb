package fencing

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/csiaddons"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// Some reasons are read again as what is known of the node: a failed write does not
// take their place, and is told beside them.
func TestAFailedWriteLeavesAReasonThatIsReadAgain(t *testing.T) {
	fences := func(state string) []v1alpha1.Fence {
		return []v1alpha1.Fence{{Name: "asked", Incident: "node-1-1", Driver: rbd, ClusterID: "rook-ceph", CIDRs: []string{"192.168.1.9/32"}, State: state}}
	}
	other := func(name string, s v1alpha1.NodeFenceStatus) *v1alpha1.NodeFence {
		return &v1alpha1.NodeFence{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: s}
	}
	for name, test := range map[string]struct {
		prepare func(*world)
		phase   v1alpha1.NodeFencePhase
		reason  string
	}{
		// Its volumes may have been detached by force: who looks at it once its taint is gone has to know.
		"a taint that can't be taken off": {func(w *world) {
			w.look("node-1")
			w.taint("node-1", fence.OwnTaintValue)
		}, v1alpha1.NodeHealthy, fence.ReasonTaintedButReady},
		// Two that wait for each other are let in together: each goes by that the other waits.
		"what was asked for can't be withdrawn": {func(w *world) {
			n := &csiaddons.NetworkFence{ObjectMeta: metav1.ObjectMeta{Name: "asked"}}
			n.Spec.FenceState, n.Spec.CIDRs = csiaddons.Fenced, []string{"192.168.1.9/32"}
			w.must(w.Create(w.Context(), n))
			mine := other("node-1", v1alpha1.NodeFenceStatus{
				Phase: v1alpha1.NodeReturned, Reason: fence.ReasonSettling, Incident: "node-1-1", Fences: fences(v1alpha1.FenceRequested),
				Node:       v1alpha1.MachineIdentity{UID: "uid-node-1", BootID: "boot-node-1", SystemUUID: "machine-node-1"},
				ReadySince: ptr.To(metav1.NewTime(noon.Add(-time.Hour))), ReadyChanged: ptr.To(metav1.NewTime(noon.Add(-time.Hour))),
			})
			theirs := other("node-3", v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeDrained, Reason: fence.ReasonNodeDeleted, Incident: "node-3-1", Fences: fences(v1alpha1.FenceFenced)})
			theirs.Status.Fences[0].Name = "theirs"
			for _, record := range []*v1alpha1.NodeFence{mine, theirs} {
				record.Finalizers = []string{fence.RecordFinalizer}
				status := record.Status
				w.must(w.Create(w.Context(), record))
				record.Status = status
				w.must(w.Status().Update(w.Context(), record))
			}
		}, v1alpha1.NodeUnfencing, fence.ReasonSharedAddress},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			test.prepare(w)
			refuse := func(o client.Object) error {
				switch o.(type) {
				case *csiaddons.NetworkFence, *corev1.Node:
					return apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, o.GetName(), errors.New("a webhook says no"))
				}
				return nil
			}
			w.funcs.Patch = func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
				return refuse(o)
			}
			w.funcs.Delete = func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
				return refuse(o)
			}
			for range 3 {
				w.fails("node-1")
			}
			s := w.expect("node-1", test.phase, test.reason)
			if !strings.Contains(s.Message, "a webhook says no") || !strings.Contains(s.Message, "; ") {
				t.Errorf("it says %s", s.Message)
			}
			w.writes = nil
			if w.fails("node-1"); len(w.writes) != 0 {
				t.Errorf("what is known already is written again: %q", w.writes)
			}
		})
	}
}

// Where csi-addons can never answer again, the record of a node that is gone goes once
// an administrator has said that nothing of it is fenced any more.
func TestAnAdministratorMayEndWhatCanNotBeTakenBack(t *testing.T) {
	w := newWorld(t)
	w.drained()
	w.must(w.Delete(w.Context(), node("node-1", "")))
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeDrained, fence.ReasonNodeDeleted)
	w.override(fence.GateUnfence)
	w.driver = func(*csiaddons.NetworkFence) error { return errors.New("the storage is gone for good") }
	w.look("node-1")
	w.csi()
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeUnfencing, fence.ReasonDriverFailed)
	record := w.record("node-1")
	record.Status.Fences = nil
	w.must(w.Status().Update(w.Context(), record))
	w.look("node-1")
	if err := w.Get(w.Context(), client.ObjectKey{Name: "node-1"}, record); !apierrors.IsNotFound(err) {
		t.Errorf("the record is still there: %+v (%v)", record.Status, err)
	}
}

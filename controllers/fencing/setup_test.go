package fencing

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestEventsWakeTheNodesThatMayWait(t *testing.T) {
	record := func(node string, fences ...string) *v1alpha1.NodeFence {
		n := &v1alpha1.NodeFence{ObjectMeta: metav1.ObjectMeta{Name: "of-" + node}, Spec: v1alpha1.NodeFenceSpec{NodeName: node}}
		for _, f := range fences {
			n.Spec.Fences, n.Labels = append(n.Spec.Fences, v1alpha1.Fence{Name: f, State: v1alpha1.FenceUnfencing}), map[string]string{fence.IncidentLabel: "true"}
		}
		return n
	}
	lost := func(n *v1alpha1.NodeFence) *v1alpha1.NodeFence {
		n.Labels = map[string]string{fence.IncidentLabel: "true"}
		n.Spec.LostSince = ptr.To(metav1.NewTime(noon))
		return n
	}
	closed := func(n *v1alpha1.NodeFence) *v1alpha1.NodeFence {
		n.Spec.Fences[0].State = v1alpha1.FenceFenced
		return n
	}
	networkFence := func(name, node string) client.Object {
		return &csiaddons.NetworkFence{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{fence.NodeLabel: node}}}
	}
	w := newWorld(t, lost(record("fencing", "f")), record("returned", "g"), lost(record("lost")), record("healthy"))
	for name, test := range map[string]struct {
		got  []reconcile.Request
		want []string
	}{
		"a healthy record":          {w.r.recordAndWaiting(t.Context(), record("a")), []string{"a"}},
		"a record in an incident":   {w.r.recordAndWaiting(t.Context(), record("a", "h")), []string{"a", "fencing", "returned"}},
		"a record of a fenced node": {w.r.recordAndWaiting(t.Context(), closed(record("a", "h"))), []string{"a"}},
		"a lost node":               {w.r.recordAndWaiting(t.Context(), lost(record("a"))), []string{"a", "fencing", "returned"}},
		"no record":                 {w.r.recordAndWaiting(t.Context(), &corev1.Node{}), nil},
		"a recorded NetworkFence":   {w.r.ofFence(t.Context(), networkFence("f", "other")), []string{"fencing"}},
		"a stray NetworkFence":      {w.r.ofFence(t.Context(), networkFence("stray", "other")), []string{"fencing", "lost", "other", "returned"}},
	} {
		var got []string
		for _, r := range test.got {
			got = append(got, r.Name)
		}
		slices.Sort(got)
		must.True(t, slices.Equal(slices.Compact(got), test.want), "%s wakes %q, want %q", name, got, test.want)
	}
}

// A node is looked at when it gets or loses an attachment. Looks begin once the attachments are known.
func TestAttachmentsWakeTheirNodes(t *testing.T) {
	w := newWorld(t)
	w.r.Held = fencingreads.NewHoldingsWithVolumes(nil, w.config.Protects)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	mustWake := func(want ...string) {
		t.Helper()
		w.Must(w.r.Held.List(t.Context(), w.API))
		var got []string
		for queue.Len() > 0 {
			request, _ := queue.Get()
			queue.Done(request)
			got = append(got, request.Name)
		}
		slices.Sort(got)
		must.Equal(t, got, want)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	must.True(t, w.r.watchAttachments(canceled, queue) != nil, "began before anything was listed")
	mustWake("node-1")
	must.Do(t, w.r.watchAttachments(t.Context(), queue))
	w.detach("pvc-a", "node-1").create(attachment("pvc-a", "node-2"))
	mustWake("node-1", "node-2")
}

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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/fence"
)

// marked is the boot that a node is marked with.
func (w *world) marked(name string) string {
	w.Helper()
	var n corev1.Node
	w.must(w.Get(w.Context(), client.ObjectKey{Name: name}, &n))
	return n.Annotations[fence.FencedBootAnnotation]
}

func (w *world) mark(name, boot string) {
	w.Helper()
	w.change(name, func(n *corev1.Node) { n.Annotations = map[string]string{fence.FencedBootAnnotation: boot} })
}

// mayNotPatchNodes is an installation without the component fencing-tainting.
func (w *world) mayNotPatchNodes() {
	w.funcs.Patch = func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
		if _, is := o.(*corev1.Node); is {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, o.GetName(), errors.New("not for you"))
		}
		return nil
	}
}

// drained is node-1, fenced.
func (w *world) drained() {
	w.Helper()
	w.gone("node-1")
	w.look("node-1")
	if got := w.marked("node-1"); got != "" {
		w.Fatalf("marked %q before the fence stands", got)
	}
	w.csi()
	w.detach("pvc-a", "node-1")
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeDrained, fence.ReasonDrained)
}

func TestAFencedBootIsMarkedUntilItIsLetIn(t *testing.T) {
	for name, comesIn := range map[string]func(*world){
		"booted": func(w *world) {
			w.boot("node-1")
			w.untaint("node-1")
			w.look("node-1")
			w.step(2 * time.Minute)
		},
		"as it is": func(w *world) { w.override(fence.GateUnfence) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.drained()
			if got := w.marked("node-1"); got != "boot-node-1" {
				t.Fatalf("marked %q", got)
			}
			w.writes = nil
			w.look("node-1")
			if len(w.writes) != 0 {
				t.Fatalf("written again: %q", w.writes)
			}
			comesIn(w)
			w.look("node-1")
			w.look("node-1")
			w.expect("node-1", v1alpha1.NodeUnfencing, w.record("node-1").Status.Reason)
			unmarked, unfenced := slices.Index(w.writes, "patch *v1.Node node-1"), slices.IndexFunc(w.writes, func(s string) bool { return strings.HasPrefix(s, "patch *csiaddons.NetworkFence") })
			if unmarked < 0 || unfenced < unmarked || w.marked("node-1") != "" {
				t.Fatalf("let in while it was marked %q: %q", w.marked("node-1"), w.writes)
			}
		})
	}
}

func TestTheMarkGoesWhenTheFenceStandsNoMore(t *testing.T) {
	w := newWorld(t)
	w.drained()
	n := w.fences()[0]
	w.must(w.Delete(t.Context(), &n))
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeFencing, fence.ReasonFencing)
	if got := w.marked("node-1"); got != "" {
		t.Errorf("marked %q", got)
	}
	w = newWorld(t)
	w.look("node-1")
	w.mark("node-1", "boot-node-1")
	w.look("node-1")
	if got := w.marked("node-1"); got != "" {
		t.Errorf("a healthy node is marked %q", got)
	}
}

func TestWithoutTheRightNobodyIsMarkedAndNothingIsSaid(t *testing.T) {
	w := newWorld(t)
	w.mayNotPatchNodes()
	w.drained()
	w.expect("node-1", v1alpha1.NodeDrained, fence.ReasonDrained)
	tries := 0
	denied := w.funcs.Patch
	w.funcs.Patch = func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		tries++
		return denied(ctx, c, o, p, opts...)
	}
	w.look("node-1")
	if tries != 0 {
		t.Errorf("tried %d times more", tries)
	}
	w.step(refresh)
	w.look("node-1")
	if tries != 1 {
		t.Errorf("tried %d times after a while, want once", tries)
	}
	// Made by hand, as the runbook says, and left there: it counts for nothing after the boot.
	w.mark("node-1", "boot-node-1")
	w.boot("node-1")
	w.untaint("node-1")
	w.look("node-1")
	w.step(2 * time.Minute)
	for range 4 {
		w.look("node-1")
		w.csi()
	}
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeHealthy, fence.ReasonReady)
}

// In doubt the node stays out: it could be lost once more, by that mark held for nobody.
func TestNobodyIsLetInWithAMarkThatCounts(t *testing.T) {
	w := newWorld(t)
	w.mayNotPatchNodes()
	w.drained()
	w.mark("node-1", "boot-node-1")
	w.override(fence.GateUnfence)
	for range 3 {
		_ = w.fails("node-1")
	}
	s := w.expect("node-1", v1alpha1.NodeUnfencing, fence.ReasonOverridden)
	if strings.Count(s.Message, "it is tried again") != 1 || !strings.Contains(s.Message, "kubectl annotate node node-1 fairlead.io/fenced-boot-") || !slices.Equal(w.cidrs(), []string{"Fenced 192.168.1.1/32"}) {
		t.Fatalf("blocked are %v; it says %s", w.cidrs(), s.Message)
	}
	w.mark("node-1", "another")
	for range 4 {
		w.look("node-1")
		w.csi()
	}
	if got := w.cidrs(); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
}

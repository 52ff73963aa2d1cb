package fencing

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
)

func (w *world) wantMark(want string) {
	w.Helper()
	if got := w.node("node-1").Annotations[fence.RecordedLossAnnotation]; got != want {
		w.Fatalf("node-1 is marked %q, and should be %q", got, want)
	}
}

func TestNodeIsMarkedOnceItsLossIsOnRecord(t *testing.T) {
	const loss = "boot-node-1@2026-01-01T12:00:00Z"
	w := newWorld(t)
	w.look("node-1")
	w.wantMark("")
	w.lose("node-1")
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeLost, fence.ReasonNotReady)
	w.wantMark("") // what is on record now was not when the node was looked at
	w.look("node-1")
	w.wantMark(loss + " pvc-a")
	w.writes = nil
	w.look("node-1")
	if len(w.writes) != 0 {
		t.Fatalf("written again: %q", w.writes)
	}

	w.taint("node-1", "nodeshutdown")
	w.look("node-1")
	w.csi()
	w.look("node-1")
	w.wantMark(loss)
	w.boot("node-1")
	w.untaint("node-1")
	w.look("node-1")
	w.wantMark("")
}

func TestNodeIsNotMarkedIfItChangedSinceItWasRead(t *testing.T) {
	w := newWorld(t)
	w.look("node-1")
	w.lose("node-1")
	w.look("node-1")
	w.funcs.Patch = func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		w.funcs.Patch = nil
		w.step(time.Second)
		w.change("node-1", w.ready(corev1.ConditionTrue))
		return c.Patch(ctx, o, p, opts...)
	}
	w.look("node-1")
	w.wantMark("")
}

func TestWithoutRightToPatchNodesNoNodeIsMarked(t *testing.T) {
	w := newWorld(t)
	w.look("node-1")
	w.lose("node-1")
	tries := 0
	w.funcs.Patch = func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		if _, is := o.(*corev1.Node); is {
			tries++
			return apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, o.GetName(), errors.New("not for you"))
		}
		return c.Patch(ctx, o, p, opts...)
	}
	for range 4 {
		w.look("node-1")
	}
	if tries != 1 {
		t.Errorf("tried %d times", tries)
	}
	w.step(refresh)
	w.look("node-1")
	if tries != 2 {
		t.Errorf("tried %d times after a while", tries)
	}
	w.expect("node-1", v1alpha1.NodeLost, fence.ReasonNotReady)
}

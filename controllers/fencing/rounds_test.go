package fencing

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// The queue repeats what was overtaken, and what failed.
func TestRoundsAreRepeatedByThemselves(t *testing.T) {
	w := newWorld(t).loseForGood()
	conflict, failure := true, true
	w.refuse(func(o client.Object) error {
		switch _, created := o.(*csiaddons.NetworkFence); {
		case created && failure:
			failure = false
			return errAPI
		case !created && conflict:
			conflict = false
			return apierrors.NewConflict(schema.GroupResource{Resource: "nodefences"}, o.GetName(), errAPI)
		}
		return nil
	}, "update/status", "create")
	for held, objects := range w.lists {
		w.Must(held.List(t.Context(), objects))
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.r.runIncidents(ctx) }()
	w.watch("node-1")
	result, err := w.r.Reconcile(ctx, kit.Request("node-1")[0])
	must.True(t, err == nil && result.RequeueAfter == refresh, "a node that is handed over is looked at again after %s, %v", result.RequeueAfter, err)
	must.Do(t, wait.PollUntilContextTimeout(ctx, behind, 30*time.Second, true, func(context.Context) (bool, error) { return len(w.fences()) == 1, nil }))
	cancel()
	must.Do(t, <-ended)
	must.True(t, !conflict && !failure, "conflict tried: %t, failure tried: %t", !conflict, !failure)
}

// The storage may take many seconds to answer.
func TestSlowStorageDelaysNoOtherNode(t *testing.T) {
	r := newRack(t, 2, 2).lost()
	answer, ended := make(chan bool), error(nil)
	r.r.Ask = func(ctx context.Context, f fence.Facts) (fence.Report, error) {
		if f.Node.Name == "worker-0" {
			<-answer
			ended = ctx.Err()
		}
		return fence.Report{}, nil
	}
	for held, objects := range r.lists {
		r.Must(held.List(t.Context(), objects))
	}
	for _, name := range r.names {
		r.watch(name)
		_, err := r.r.Reconcile(t.Context(), kit.Request(name)[0])
		must.Do(t, err)
	}
	for len(r.fences()) == 0 {
		first, _ := r.r.incidents.Get() // the answer for worker-1 adds it
		r.r.roundOf(t.Context(), first)
	}
	for range 3 { // looks while the storage is asked
		r.r.round(t.Context(), []string{"worker-0"})
		r.forgetWrites()
	}
	r.r.round(t.Context(), []string{"worker-0"})
	r.mustHaveWritten()
	r.recordMustBe("worker-0", v1alpha1.NodeFencing, fence.ReasonFencing, "fencing it").mustHaveFences("Fenced 10.0.0.2/32")
	close(answer)
	r.r.asked.running.Wait()
	must.True(t, ended == nil, "the question ended with the round that asked it: %v", ended)
	for len(r.fences()) < 2 {
		first, _ := r.r.incidents.Get()
		r.r.roundOf(t.Context(), first)
	}
}

// A finalizer of someone else keeps the record of a replaced machine: it is deleted once.
func TestRecordWithAnotherFinalizerIsDeletedOnce(t *testing.T) {
	w := newWorld(t).look().detach("pvc-a", "node-1").look()
	record := w.record("node-1")
	record.Finalizers = append(record.Finalizers, "example.com/theirs")
	w.Must(w.Update(t.Context(), record))
	w.pass(time.Minute).replace("2", "192.168.1.21").forgetWrites().look()
	deleted := 0
	for _, write := range w.Client.Wrote() {
		if write == "delete NodeFence/node-1" {
			deleted++
		}
	}
	must.Equal(t, deleted, 1)
}

// One odd object must not keep other nodes from being fenced.
func TestPanicConcernsOneNodeOnly(t *testing.T) {
	r := newRack(t, 2, 2).lost()
	r.Client.Before = nil
	r.refuse(func(o client.Object) error {
		if o.GetName() == "worker-0" {
			panic("odd")
		}
		return nil
	}, "update/status")
	_, err := r.together()
	must.True(t, err != nil, "no error")
	r.recordMustBe("worker-1", v1alpha1.NodeFencing, fence.ReasonFencing)
}

// Package kit has what the controllers share: predicates and handlers of events, delays,
// reports that are made once, and notes that fit into an event.
package kit

import (
	"context"
	"maps"
	"sync/atomic"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// InNamespace passes objects of one namespace.
func InNamespace(namespace string) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetNamespace() == namespace })
}

// OfDriver passes VolumeAttachments whose attacher is served.
func OfDriver(served func(driver string) bool) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool {
		va, ok := o.(*storagev1.VolumeAttachment)
		return ok && served(va.Spec.Attacher)
	})
}

// Updated passes updates of one kind for which changed returns true, and every other event.
func Updated[T client.Object](changed func(before, after T) bool) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isBefore := e.ObjectOld.(T)
		after, isAfter := e.ObjectNew.(T)
		return isBefore && isAfter && changed(before, after)
	}}
}

// Changed passes updates that change what the cache keeps of an object. Longhorn
// writes the status of engines every few seconds, mostly with sizes and snapshots.
func Changed() predicate.Predicate {
	return Updated(func(before, after client.Object) bool {
		return !equality.Semantic.DeepEqual(significant(before), significant(after))
	})
}

// significant is a copy without what every write changes.
func significant(o client.Object) client.Object {
	o = o.DeepCopyObject().(client.Object)
	o.SetResourceVersion("")
	o.SetManagedFields(nil)
	return o
}

// FenceRecordChanged passes all but updates of the times at which a healthy node and its
// addresses were seen, which are written every few minutes for each node, and of the text of a
// refused write: each retry may have another, and retries have their own pace.
func FenceRecordChanged() predicate.Predicate {
	return Updated(func(before, after *v1alpha1.NodeFence) bool {
		return !equality.Semantic.DeepEqual(withoutTimes(before), withoutTimes(after))
	})
}

func withoutTimes(record *v1alpha1.NodeFence) client.Object {
	n := record.DeepCopy()
	n.Spec.LastSeen, n.Status.LastError, n.Status.ObservedGeneration, n.Generation = nil, "", 0, 0
	for i := range n.Status.Conditions {
		n.Status.Conditions[i].ObservedGeneration = 0
	}
	if n.Status.Reason == fence.ReasonWriteFailed {
		n.Status.Message = ""
	}
	for i := range n.Spec.Identities {
		for a := range n.Spec.Identities[i].Addresses {
			n.Spec.Identities[i].Addresses[a].LastSeen = metav1.Time{}
		}
	}
	return significant(n)
}

// AnnotationsChanged passes objects with relevant annotations when they come, go,
// or change their annotations.
func AnnotationsChanged(relevant func(map[string]string) bool) predicate.Predicate {
	has := func(o client.Object) bool { return relevant(o.GetAnnotations()) }
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return has(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return has(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return (has(e.ObjectOld) || has(e.ObjectNew)) && !maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations())
		},
	}
}

// Request asks for cluster-scoped objects by name. Empty names are skipped.
func Request(names ...string) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range names {
		requests = append(requests, RequestIn("", name)...)
	}
	return requests
}

// RequestIn asks for an object in a namespace. An empty name is skipped.
func RequestIn(namespace, name string) []reconcile.Request {
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}

// Always maps every object to one request, for controllers that look at everything.
func Always(request reconcile.Request) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{request}
	})
}

// AtStart makes one request when the controller starts: there may be no object yet
// that brings an event.
func AtStart(request reconcile.Request) source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(request)
		return nil
	})
}

// A window is nine times as long as the last look at the cache took. Looks of up to 110 ms
// thus take about a tenth of the time; longer looks take more, since a window is at most a
// second. Live looks do not count: each is for a step that is due.
const (
	least = 50 * time.Millisecond
	most  = time.Second
	share = 9
)

// Window gathers a burst of events into one request, for a controller that looks at everything.
type Window struct {
	// lastLook is how long the last look took, in nanoseconds.
	lastLook atomic.Int64
}

// Looked notes the end of a look that began at a time.
func (w *Window) Looked(began time.Time) { w.lastLook.Store(int64(time.Since(began))) }

func (w *Window) length() time.Duration {
	return min(max(share*time.Duration(w.lastLook.Load()), least), most)
}

// Handler makes one request, at the end of the window that the first event begins.
func (w *Window) Handler(request reconcile.Request) handler.EventHandler {
	soon := func(queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		queue.AddAfter(request, w.length())
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			soon(queue)
		},
		UpdateFunc: func(_ context.Context, _ event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			soon(queue)
		},
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			soon(queue)
		},
	}
}

// Earliest returns the shortest of the delays. 0 is no request to look again, as in reconcile.Result.
func Earliest(delays ...time.Duration) time.Duration {
	var earliest time.Duration
	for _, d := range delays {
		if d > 0 && (earliest == 0 || d < earliest) {
			earliest = d
		}
	}
	return earliest
}

// Backoff is the pause after a number of failures: first, which doubles with each further failure, up to most.
func Backoff(first, most time.Duration, failures int) time.Duration {
	pause := first
	for ; failures > 1 && pause < most; failures-- {
		pause *= 2
	}
	return min(pause, most)
}

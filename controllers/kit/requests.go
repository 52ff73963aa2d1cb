package kit

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

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

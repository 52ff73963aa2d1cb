package services

import (
	"context"
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/nfs/publish"
)

// Servers are the endpoints of Services of server pods.
type Servers interface {
	// Use sets the Service that an NFSService reads; empty: none.
	Use(service types.NamespacedName, server string)
	// Slices of the Service that an NFSService reads; false: not read yet. Then the
	// NFSService is reconciled once they are.
	Slices(service types.NamespacedName) ([]discoveryv1.EndpointSlice, bool)
}

// Watches watches the EndpointSlices of the Services that NFSServices name, and no others: memory does not grow with the
// cluster's Services.
type Watches struct {
	Client client.WithWatch
	// changed is called with an NFSService whose servers changed.
	changed func(types.NamespacedName)

	mu      sync.Mutex
	ctx     context.Context
	watches map[types.NamespacedName]*serverWatch // by NFSService
}

type serverWatch struct {
	server   string
	stop     context.CancelFunc
	informer toolscache.SharedIndexInformer
}

// Start makes watches possible, until the context ends.
func (w *Watches) Start(ctx context.Context) error {
	w.mu.Lock()
	w.ctx = ctx
	for service, has := range w.watches {
		w.run(service, has)
	}
	w.mu.Unlock()
	<-ctx.Done()
	return nil
}

// Use implements Servers.
func (w *Watches) Use(service types.NamespacedName, server string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	has := w.watches[service]
	if has != nil && has.server == server {
		return
	}
	if has != nil {
		if has.stop != nil {
			has.stop()
		}
		delete(w.watches, service)
	}
	if server == "" {
		return
	}
	if w.watches == nil {
		w.watches = map[types.NamespacedName]*serverWatch{}
	}
	has = &serverWatch{server: server}
	w.watches[service] = has
	if w.ctx != nil {
		w.run(service, has)
	}
}

func (w *Watches) run(service types.NamespacedName, has *serverWatch) {
	ctx, stop := context.WithCancel(w.ctx)
	has.stop = stop
	options := func(raw metav1.ListOptions) *client.ListOptions {
		return &client.ListOptions{Namespace: service.Namespace, LabelSelector: labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: has.server}), Raw: &raw}
	}
	has.informer = toolscache.NewSharedIndexInformer(toolscache.ToListWatcherWithWatchListSemantics(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			list := &discoveryv1.EndpointSliceList{}
			return list, w.Client.List(ctx, list, options(raw))
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			return w.Client.Watch(ctx, &discoveryv1.EndpointSliceList{}, options(raw))
		},
	}, w.Client), &discoveryv1.EndpointSlice{}, 0, toolscache.Indexers{})
	_, _ = has.informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{ // fails only on an informer that has ended
		AddFunc:    func(any) { w.changed(service) },
		UpdateFunc: func(any, any) { w.changed(service) },
		DeleteFunc: func(any) { w.changed(service) },
	})
	informer := has.informer
	go informer.RunWithContext(ctx)
	go func() { // a Service without slices has no event
		if toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			w.changed(service)
		}
	}()
}

// Slices implements Servers. Slices that Fairlead publishes for NFS services are no servers.
func (w *Watches) Slices(service types.NamespacedName) ([]discoveryv1.EndpointSlice, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	has := w.watches[service]
	if has == nil || has.informer == nil || !has.informer.HasSynced() {
		return nil, has == nil
	}
	var list []discoveryv1.EndpointSlice
	for _, object := range has.informer.GetStore().List() {
		if s, ok := object.(*discoveryv1.EndpointSlice); ok && s.Labels[publish.ServiceLabel] == "" {
			list = append(list, *s)
		}
	}
	return list, true
}

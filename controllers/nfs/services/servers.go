package services

import (
	"context"
	"net/netip"
	"slices"
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
	// Slices of the Service that an NFSService reads now; server is empty where it reads none. false: not read yet. Then the
	// NFSService is reconciled once they are.
	Slices(service types.NamespacedName, server string) ([]discoveryv1.EndpointSlice, bool)
}

// Watches watches the EndpointSlices of the Services that NFSServices name, and no others: memory does not grow with the
// cluster's Services.
type Watches struct {
	Client client.WithWatch
	// changed is called with an NFSService whose servers changed.
	changed func(types.NamespacedName)

	mu      sync.Mutex
	watches map[types.NamespacedName]serverWatch // by NFSService
}

type serverWatch struct {
	server   string
	stop     context.CancelFunc
	informer toolscache.SharedIndexInformer
}

// Slices implements Servers. Slices that Fairlead publishes for NFS services are no servers.
func (w *Watches) Slices(service types.NamespacedName, server string) ([]discoveryv1.EndpointSlice, bool) {
	informer := w.informer(service, server)
	if informer == nil || !informer.HasSynced() {
		return nil, informer == nil
	}
	var list []discoveryv1.EndpointSlice
	for _, object := range informer.GetStore().List() {
		if s, ok := object.(*discoveryv1.EndpointSlice); ok && s.Labels[publish.ServiceLabel] == "" {
			list = append(list, *s)
		}
	}
	return list, true
}

// informer of the Service that an NFSService reads; nil: none. It stops the watch of another Service.
func (w *Watches) informer(service types.NamespacedName, server string) toolscache.SharedIndexInformer {
	w.mu.Lock()
	defer w.mu.Unlock()
	has, ok := w.watches[service]
	if ok && has.server != server {
		has.stop()
		delete(w.watches, service)
	}
	if server == "" {
		return nil
	}
	if !ok || has.server != server {
		if w.watches == nil {
			w.watches = map[types.NamespacedName]serverWatch{}
		}
		has = w.watch(service, server)
		w.watches[service] = has
	}
	return has.informer
}

func (w *Watches) watch(service types.NamespacedName, server string) serverWatch {
	ctx, stop := context.WithCancel(context.Background()) // the process ends with the leadership
	options := func(raw metav1.ListOptions) *client.ListOptions {
		return &client.ListOptions{Namespace: service.Namespace, LabelSelector: labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: server}), Raw: &raw}
	}
	informer := toolscache.NewSharedIndexInformer(toolscache.ToListWatcherWithWatchListSemantics(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			list := &discoveryv1.EndpointSliceList{}
			return list, w.Client.List(ctx, list, options(raw))
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			return w.Client.Watch(ctx, &discoveryv1.EndpointSliceList{}, options(raw))
		},
	}, w.Client), &discoveryv1.EndpointSlice{}, 0, toolscache.Indexers{})
	_, _ = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{ // fails only on an informer that has ended
		AddFunc:    func(any) { w.changed(service) },
		UpdateFunc: func(any, any) { w.changed(service) },
		DeleteFunc: func(any) { w.changed(service) },
	})
	go informer.RunWithContext(ctx)
	go func() { // a Service without slices has no event
		if toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			w.changed(service)
		}
	}()
	return serverWatch{server, stop, informer}
}

// family of the servers to discover, since a server with two addresses is one server. In order: the family of the recorded
// ClusterIPs, of the static backends, of the recorded backends, of the first slice.
func (p *pass) family(list []discoveryv1.EndpointSlice) discoveryv1.AddressType {
	var texts []string
	for _, s := range p.service.Status.Slots {
		texts = append(texts, s.Address)
	}
	texts = append(texts, p.service.Status.Address)
	for _, b := range p.spec.Backends {
		texts = append(texts, b.Addr.Addr().String())
	}
	for _, b := range p.service.Status.Backends {
		if a, err := netip.ParseAddrPort(b.Address); err == nil {
			texts = append(texts, a.Addr().String())
		}
	}
	for _, text := range texts {
		if a, err := netip.ParseAddr(text); err == nil {
			return discoveryv1.AddressType(publish.FamilyOf(a))
		}
	}
	has := func(family discoveryv1.AddressType) bool {
		return slices.ContainsFunc(list, func(s discoveryv1.EndpointSlice) bool { return s.AddressType == family && len(s.Endpoints) > 0 })
	}
	if !has(discoveryv1.AddressTypeIPv4) && has(discoveryv1.AddressTypeIPv6) {
		return discoveryv1.AddressTypeIPv6
	}
	return discoveryv1.AddressTypeIPv4
}

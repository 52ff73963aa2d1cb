package pools

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
	"github.com/fairlead-io/fairlead/internal/reads/nfsreads"
)

// Observer keeps pools in line with VolumeAttachments and NFSServices.
type Observer struct {
	Pools   *Pools
	Drivers nfsreads.Drivers
	// Cache holds VolumeAttachments, PersistentVolumes, Nodes and NFSServices.
	Cache cache.Cache
	Log   *slog.Logger

	synced chan struct{}
}

// NewObserver returns an observer.
func NewObserver(pools *Pools, drivers nfsreads.Drivers, objects cache.Cache, log *slog.Logger) *Observer {
	return &Observer{Pools: pools, Drivers: drivers, Cache: objects, Log: log, synced: make(chan struct{})}
}

// Source asks a controller for a request some time after each change of a node; nil: for none. The controller starts once
// the pools are complete.
func (o *Observer) Source(request func(service types.NamespacedName, node string) reconcile.Request, after time.Duration) source.Source {
	return changes{o, request, after}
}

type changes struct {
	*Observer
	request func(service types.NamespacedName, node string) reconcile.Request
	after   time.Duration
}

// Start implements source.Source.
func (c changes) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	if c.request != nil {
		c.Pools.OnChange(func(service types.NamespacedName, node string) { queue.AddAfter(c.request(service, node), c.after) })
	}
	return nil
}

// WaitForSync implements source.SyncingSource.
func (c changes) WaitForSync(ctx context.Context) error {
	select {
	case <-c.synced:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Start observes until the context ends. VolumeAttachments come last: the other kinds say what they mean.
func (o *Observer) Start(ctx context.Context) error {
	for _, object := range []client.Object{&corev1.PersistentVolume{}, &corev1.Node{}} {
		if _, err := o.Cache.GetInformer(ctx, object); err != nil { // waits until all objects are known
			return fmt.Errorf("watching %T: %w", object, err)
		}
	}
	for _, watch := range []struct {
		object  client.Object
		handler toolscache.ResourceEventHandler
	}{
		{&v1alpha1.NFSService{}, handlers(o.Pools.SetService, func(s *v1alpha1.NFSService) {
			o.Pools.RemoveService(types.NamespacedName{Namespace: s.Namespace, Name: s.Name})
		})},
		{&storagev1.VolumeAttachment{}, handlers(func(va *storagev1.VolumeAttachment) { o.Observe(ctx, va) }, func(va *storagev1.VolumeAttachment) { o.Pools.Detach(va.Spec.NodeName, string(va.UID)) })},
	} {
		informer, err := o.Cache.GetInformer(ctx, watch.object)
		if err != nil {
			return fmt.Errorf("watching %T: %w", watch.object, err)
		}
		registration, err := informer.AddEventHandler(watch.handler)
		if err != nil {
			return fmt.Errorf("watching %T: %w", watch.object, err)
		}
		if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			return nil
		}
	}
	close(o.synced)
	<-ctx.Done()
	return nil
}

// handlers forgets an object that was deleted, also if the watch missed that and shows the next one of its name as an update.
func handlers[T client.Object](observe, forget func(T)) toolscache.ResourceEventHandler {
	call := func(f func(T), object any) {
		if last, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = last.Obj
		}
		if o, ok := object.(T); ok {
			f(o)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { call(observe, object) },
		UpdateFunc: func(before, object any) {
			if was, ok := before.(T); ok {
				if is, ok := object.(T); ok && was.GetUID() != is.GetUID() {
					forget(was)
				}
			}
			call(observe, object)
		},
		DeleteFunc: func(object any) { call(forget, object) },
	}
}

// Observe takes over the state of a VolumeAttachment. Without a service it counts nowhere yet: the attacher writes the
// service into the VolumeAttachment once the service is known.
func (o *Observer) Observe(ctx context.Context, va *storagev1.VolumeAttachment) {
	a, ok, err := o.Drivers.Attachment(va, nfsreads.VolumesOf(ctx, o.Cache))
	switch {
	case err != nil:
		o.Log.Error("reading the volume of a VolumeAttachment", "volumeattachment", va.Name, "error", err)
	case ok:
		o.Pools.Record(a.Service, NodeOf(ctx, o.Cache, a.Node), string(va.UID), a.Address)
	case nfsreads.Detached(va):
		o.Pools.Detach(va.Spec.NodeName, string(va.UID))
	}
}

// NodeOf is a node with its zone. A missing node has only a name.
func NodeOf(ctx context.Context, reader client.Reader, name string) assign.Node {
	var node corev1.Node
	if err := reader.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
		return assign.Node{Name: name}
	}
	return assign.Node{Name: name, Zone: node.Labels[corev1.LabelTopologyZone]}
}

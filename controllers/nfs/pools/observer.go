package pools

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs/volume"
)

// Observer keeps pools in line with VolumeAttachments and NFSServices. It runs in
// every replica, leader or not, so that each can answer CSI RPCs.
type Observer struct {
	Pools   *Pools
	Drivers Drivers
	// Cache holds VolumeAttachments, PersistentVolumes, Nodes and NFSServices.
	Cache cache.Cache
	Log   *slog.Logger

	mu sync.Mutex
	// unresolved are VolumeAttachments whose PersistentVolume was not seen yet, by its name.
	unresolved map[string]map[string]*storagev1.VolumeAttachment
	once       sync.Once
	synced     chan struct{}
}

// NeedLeaderElection makes the manager run it in every replica.
func (*Observer) NeedLeaderElection() bool { return false }

// Synced is closed once the pools hold all objects of the first lists.
func (o *Observer) Synced() <-chan struct{} {
	o.once.Do(func() { o.synced = make(chan struct{}) })
	return o.synced
}

// Wait returns once the pools are complete, or the context ends.
func (o *Observer) Wait(ctx context.Context) error {
	select {
	case <-o.Synced():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Start observes until the context ends.
func (o *Observer) Start(ctx context.Context) error {
	var registered []toolscache.InformerSynced
	for _, watch := range []struct {
		object  client.Object
		handler toolscache.ResourceEventHandler
	}{
		{&storagev1.VolumeAttachment{}, handlers(func(va *storagev1.VolumeAttachment) { o.Observe(ctx, va) }, func(va *storagev1.VolumeAttachment) { o.Forget(va) })},
		{&corev1.PersistentVolume{}, handlers(func(pv *corev1.PersistentVolume) { o.volume(ctx, pv.Name) }, func(*corev1.PersistentVolume) {})},
		{&v1alpha1.NFSService{}, handlers(o.Pools.SetService, func(s *v1alpha1.NFSService) {
			o.Pools.RemoveService(types.NamespacedName{Namespace: s.Namespace, Name: s.Name})
		})},
	} {
		informer, err := o.Cache.GetInformer(ctx, watch.object)
		if err != nil {
			return fmt.Errorf("watching %T: %w", watch.object, err)
		}
		registration, err := informer.AddEventHandler(watch.handler)
		if err != nil {
			return fmt.Errorf("watching %T: %w", watch.object, err)
		}
		registered = append(registered, registration.HasSynced)
	}
	if _, err := o.Cache.GetInformer(ctx, &corev1.Node{}); err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), registered...) {
		return nil
	}
	// The kinds were read in any order. Now all are complete.
	if err := o.Pools.Rebuild(func() ([]Attachment, error) { return o.Attachments(ctx) }); err != nil {
		return fmt.Errorf("reading VolumeAttachments: %w", err)
	}
	o.Synced()
	close(o.synced)
	<-ctx.Done()
	return nil
}

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
		AddFunc:    func(object any) { call(observe, object) },
		UpdateFunc: func(_, object any) { call(observe, object) },
		DeleteFunc: func(object any) { call(forget, object) },
	}
}

// Observe takes over the state of a VolumeAttachment.
func (o *Observer) Observe(ctx context.Context, va *storagev1.VolumeAttachment) {
	a, ok := o.attachment(ctx, va)
	switch {
	case ok:
		o.Pools.Record(a.Service, a.Node, a.Key, a.Address)
	case Detached(va):
		o.Pools.Detach(string(va.UID))
	}
}

// Forget is for a VolumeAttachment that is gone.
func (o *Observer) Forget(va *storagev1.VolumeAttachment) {
	o.mu.Lock()
	if pv := va.Spec.Source.PersistentVolumeName; pv != nil && o.unresolved[*pv] != nil {
		delete(o.unresolved[*pv], va.Name)
	}
	o.mu.Unlock()
	o.Pools.Detach(string(va.UID))
}

// attachment is what a VolumeAttachment means for the pools; false: nothing.
func (o *Observer) attachment(ctx context.Context, va *storagev1.VolumeAttachment) (Attachment, bool) {
	if _, ours := o.Drivers[va.Spec.Attacher]; !ours || AddressOf(va) == "" || Detached(va) {
		return Attachment{}, false
	}
	service, err := volume.ParseService(va.Annotations[ServiceAnnotation])
	if err != nil {
		source, pv, err := Source(ctx, o.Cache, va)
		if err == nil {
			service, err = o.Drivers.ServiceOf(source, pv)
		}
		if err != nil {
			o.wait(va, pv)
			o.Log.Debug("a VolumeAttachment has no NFS service yet", "volumeattachment", va.Name, "error", err)
			return Attachment{}, false
		}
	}
	return Attachment{Service: service, Node: NodeOf(ctx, o.Cache, va.Spec.NodeName), Key: string(va.UID), Address: AddressOf(va)}, true
}

func (o *Observer) wait(va *storagev1.VolumeAttachment, pv string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.unresolved == nil {
		o.unresolved = map[string]map[string]*storagev1.VolumeAttachment{}
	}
	if o.unresolved[pv] == nil {
		o.unresolved[pv] = map[string]*storagev1.VolumeAttachment{}
	}
	o.unresolved[pv][va.Name] = va
}

// volume observes the attachments that wait for a PersistentVolume.
func (o *Observer) volume(ctx context.Context, pv string) {
	o.mu.Lock()
	waiting := o.unresolved[pv]
	delete(o.unresolved, pv)
	o.mu.Unlock()
	for _, va := range waiting {
		o.Observe(ctx, va)
	}
}

// Attachments are all cached attachments with an address.
func (o *Observer) Attachments(ctx context.Context) ([]Attachment, error) {
	var list storagev1.VolumeAttachmentList
	if err := o.Cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var attachments []Attachment
	for i := range list.Items {
		if a, ok := o.attachment(ctx, &list.Items[i]); ok {
			attachments = append(attachments, a)
		}
	}
	return attachments, nil
}

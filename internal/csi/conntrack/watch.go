package conntrack

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/nfs/publish"
)

// Watch runs the cleaner on what the cluster says, until the context ends. It lists
// and watches Services and EndpointSlices with the label of NFS services, in all
// namespaces, and no others. It waits for an API server that does not answer yet.
func Watch(ctx context.Context, c *rest.Config, cleaner *Cleaner) error {
	selector, err := labels.Parse(publish.ServiceLabel)
	if err != nil {
		return fmt.Errorf("selecting NFS services: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), discoveryv1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("building the scheme: %w", err)
	}
	// Without a mapper of its own, the cache asks the API server now, and fails if there is no answer yet.
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Service"), meta.RESTScopeNamespace)
	mapper.Add(discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), meta.RESTScopeNamespace)
	labelled := cache.ByObject{Label: selector, Transform: cache.TransformStripManagedFields()}
	objects, err := cache.New(c, cache.Options{Scheme: scheme, Mapper: mapper, ByObject: map[client.Object]cache.ByObject{
		&corev1.Service{}: labelled, &discoveryv1.EndpointSlice{}: labelled,
	}})
	if err != nil {
		return fmt.Errorf("building the cache of NFS services: %w", err)
	}
	changes := make(chan struct{}, 1)
	changed := func() {
		select {
		case changes <- struct{}{}:
		default:
		}
	}
	cleaner.Frontends = func(ctx context.Context) (Frontends, error) {
		var services corev1.ServiceList
		var slices discoveryv1.EndpointSliceList
		if err := errors.Join(objects.List(ctx, &services, client.UnsafeDisableDeepCopy), objects.List(ctx, &slices, client.UnsafeDisableDeepCopy)); err != nil {
			return nil, fmt.Errorf("listing NFS services: %w", err)
		}
		return NewFrontends(services.Items, slices.Items), nil
	}
	ended := make(chan error, 1)
	go func() { ended <- objects.Start(ctx) }()
	for _, object := range []client.Object{&corev1.Service{}, &discoveryv1.EndpointSlice{}} {
		informer, err := objects.GetInformer(ctx, object)
		if err != nil {
			return fmt.Errorf("watching NFS services: %w", err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { changed() }, UpdateFunc: func(any, any) { changed() }, DeleteFunc: func(any) { changed() },
		}); err != nil {
			return fmt.Errorf("watching NFS services: %w", err)
		}
	}
	if !objects.WaitForCacheSync(ctx) { // a cache that is not started yet cannot be read
		return <-ended
	}
	changed() // also without any NFS service
	cleaner.Run(ctx, changes)
	return <-ended
}

// Package fakeapi is a fake API server for tests of controllers: it allocates
// ClusterIPs and UIDs, checks preconditions, counts generations, lets a client crash
// at any write, and has stale caches.
package fakeapi

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// API is the server. A test uses its methods as a user would: they pass no hook.
type API struct {
	client.WithWatch
	mu     sync.Mutex
	next   int
	nextID int
	// statuses are the kinds with a status subresource.
	statuses map[string]bool
	// deleted has the last versions of deleted objects: a later object of the same name gets a later version.
	deleted map[string]int
}

// Index of a cache, for reads with a field selector.
type Index struct {
	Object client.Object
	Field  string
	Keys   client.IndexerFunc
}

// Indexes collects the indexes that a manager would be asked for. It implements client.FieldIndexer.
type Indexes []Index

// IndexField adds an index.
func (i *Indexes) IndexField(_ context.Context, o client.Object, field string, keys client.IndexerFunc) error {
	*i = append(*i, Index{o, field, keys})
	return nil
}

// PodsByNode is the field selector that the API server itself supports.
func PodsByNode() Index {
	return Index{&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }}
}

// New makes a server. statuses names the kinds with a status subresource.
func New(scheme *runtime.Scheme, indexes []Index, statuses ...client.Object) *API {
	a := &API{statuses: map[string]bool{}, deleted: map[string]int{}}
	for _, o := range statuses {
		a.statuses[KindOf(o)] = true
	}
	tracker := clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder())
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjectTracker(tracker).WithStatusSubresource(statuses...)
	for _, i := range indexes {
		builder = builder.WithIndex(i.Object, i.Field, i.Keys)
	}
	a.WithWatch = interceptor.NewClient(builder.Build(), interceptor.Funcs{Create: a.create, Delete: a.delete, Update: a.update, Patch: a.patch})
	return a
}

// Seed stores an object with its status.
func (a *API) Seed(ctx context.Context, o client.Object) error {
	whole := o.DeepCopyObject().(client.Object)
	if err := a.Create(ctx, o); err != nil || !a.statuses[KindOf(o)] {
		return err
	}
	whole.SetUID(o.GetUID())
	whole.SetResourceVersion(o.GetResourceVersion())
	return a.Status().Update(ctx, whole)
}

// create gives a UID to each object, and a ClusterIP to each Service.
func (a *API) create(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	given := o.GetUID() != ""
	if !given {
		a.nextID++
		o.SetUID(types.UID(fmt.Sprintf("uid-%d", a.nextID)))
	}
	err := a.createAllocated(ctx, c, o, options)
	if err != nil && !given {
		o.SetUID("")
	}
	for err == nil && version(o) <= a.deleted[keyOf(o, client.ObjectKeyFromObject(o))] {
		err = c.Update(ctx, o)
	}
	return err
}

func version(o client.Object) int {
	n, _ := strconv.Atoi(o.GetResourceVersion())
	return n
}

func (a *API) createAllocated(ctx context.Context, c client.WithWatch, o client.Object, options []client.CreateOption) error {
	if service, ok := o.(*corev1.Service); ok && service.Spec.ClusterIP != corev1.ClusterIPNone {
		var all corev1.ServiceList
		if err := c.List(ctx, &all); err != nil {
			return err
		}
		used := map[string]bool{}
		for i := range all.Items {
			used[all.Items[i].Spec.ClusterIP] = true
		}
		if used[service.Spec.ClusterIP] { // the API server allocates before it looks at the name
			return apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, service.Name, field.ErrorList{field.Invalid(
				field.NewPath("spec", "clusterIPs"), service.Spec.ClusterIPs, "failed to allocate IP "+service.Spec.ClusterIP+": provided IP is already allocated")})
		}
		var have corev1.Service
		if c.Get(ctx, client.ObjectKeyFromObject(o), &have) == nil {
			return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "services"}, o.GetName())
		}
		for service.Spec.ClusterIP == "" || used[service.Spec.ClusterIP] {
			a.next++
			service.Spec.ClusterIP = fmt.Sprintf("10.96.%d.%d", a.next/250, a.next%250+1)
			if len(service.Spec.IPFamilies) > 0 && service.Spec.IPFamilies[0] == corev1.IPv6Protocol {
				service.Spec.ClusterIP = fmt.Sprintf("fd00:96::%x", a.next)
			}
			service.Spec.ClusterIPs = []string{service.Spec.ClusterIP}
		}
	}
	return c.Create(ctx, o, options...)
}

// delete checks preconditions, which the fake client does not.
func (a *API) delete(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
	have := o.DeepCopyObject().(client.Object)
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), have); err != nil {
		return err
	}
	given := (&client.DeleteOptions{}).ApplyOptions(options).Preconditions
	if given != nil && (given.UID != nil && have.GetUID() != *given.UID || given.ResourceVersion != nil && have.GetResourceVersion() != *given.ResourceVersion) {
		return apierrors.NewConflict(schema.GroupResource{Resource: fmt.Sprintf("%T", o)}, o.GetName(), errors.New("a precondition failed"))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.deleted[keyOf(o, client.ObjectKeyFromObject(o))] = version(have)
	return c.Delete(ctx, o, options...)
}

func (a *API) update(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
	return counted(ctx, c, o, func() error { return c.Update(ctx, o, options...) })
}

func (a *API) patch(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
	return counted(ctx, c, o, func() error { return c.Patch(ctx, o, p, options...) })
}

// counted counts the generation of objects with a pod template, as the API server does.
func counted(ctx context.Context, c client.WithWatch, o client.Object, write func() error) error {
	before := specOf(o)
	if before == nil {
		return write()
	}
	have := o.DeepCopyObject().(client.Object)
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), have); err != nil {
		return err
	}
	before = specOf(have)
	if err := write(); err != nil || equality.Semantic.DeepEqual(before, specOf(o)) {
		return err
	}
	o.SetGeneration(have.GetGeneration() + 1)
	return c.Update(ctx, o)
}

func specOf(o client.Object) any {
	switch o := o.(type) {
	case *appsv1.Deployment:
		return o.Spec
	case *appsv1.DaemonSet:
		return o.Spec
	}
	return nil
}

// Package fakeapi is a fake API server for tests of controllers: it allocates
// ClusterIPs, counts writes, lets a client crash at any write, and has caches that
// are behind.
package fakeapi

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
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

// API is the server. Its own methods are those of a user: no hook sees them.
type API struct {
	client.WithWatch
	mu     sync.Mutex
	next   int
	nextID int
}

// Index of a cache that reads go by.
type Index struct {
	Object client.Object
	Field  string
	Keys   client.IndexerFunc
}

// New makes a server. Kinds with a status of their own are named in statuses.
func New(scheme *runtime.Scheme, indexes []Index, statuses ...client.Object) *API {
	a := &API{}
	tracker := clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder())
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjectTracker(tracker).WithStatusSubresource(statuses...)
	for _, i := range indexes {
		builder = builder.WithIndex(i.Object, i.Field, i.Keys)
	}
	a.WithWatch = interceptor.NewClient(builder.Build(), interceptor.Funcs{Create: a.create})
	return a
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
	return err
}

func (a *API) createAllocated(ctx context.Context, c client.WithWatch, o client.Object, options []client.CreateOption) error {
	if service, ok := o.(*corev1.Service); ok && service.Spec.ClusterIP != corev1.ClusterIPNone {
		var have corev1.Service
		if c.Get(ctx, client.ObjectKeyFromObject(o), &have) == nil {
			return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "services"}, o.GetName())
		}
		var all corev1.ServiceList
		if err := c.List(ctx, &all); err != nil {
			return err
		}
		used := map[string]bool{}
		for i := range all.Items {
			used[all.Items[i].Spec.ClusterIP] = true
		}
		if used[service.Spec.ClusterIP] {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, service.Name, field.ErrorList{field.Invalid(
				field.NewPath("spec", "clusterIPs"), service.Spec.ClusterIPs, "failed to allocate IP "+service.Spec.ClusterIP+": provided IP is already allocated")})
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

// Write is one write of a client.
type Write struct {
	// Verb is create, update, patch, delete, or one of these with /status.
	Verb   string
	Object client.Object
}

// Client is what a controller has: its writes go through hooks, its reads may be old.
type Client struct {
	client.WithWatch
	// Before is called with each write; an error replaces the write.
	Before func(Write) error
	// After is called when a write is done; an error is what the client is told.
	After func(Write) error
	// Cache answers reads; nil is the server.
	Cache *Cache
}

// Client makes a client of the server.
func (a *API) Client() *Client {
	c := &Client{}
	c.WithWatch = interceptor.NewClient(a.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, s client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if c.Cache != nil {
				return c.Cache.Get(ctx, key, o, options...)
			}
			return s.Get(ctx, key, o, options...)
		},
		List: func(ctx context.Context, s client.WithWatch, l client.ObjectList, options ...client.ListOption) error {
			if c.Cache != nil {
				return c.Cache.List(ctx, l, options...)
			}
			return s.List(ctx, l, options...)
		},
		Create: func(ctx context.Context, s client.WithWatch, o client.Object, options ...client.CreateOption) error {
			return c.write(Write{"create", o}, func() error { return s.Create(ctx, o, options...) })
		},
		Update: func(ctx context.Context, s client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			return c.write(Write{"update", o}, func() error { return s.Update(ctx, o, options...) })
		},
		Patch: func(ctx context.Context, s client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			return c.write(Write{"patch", o}, func() error { return s.Patch(ctx, o, p, options...) })
		},
		Delete: func(ctx context.Context, s client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			return c.write(Write{"delete", o}, func() error { return s.Delete(ctx, o, options...) })
		},
		SubResourceUpdate: func(ctx context.Context, s client.Client, sub string, o client.Object, options ...client.SubResourceUpdateOption) error {
			return c.write(Write{"update/" + sub, o}, func() error { return s.SubResource(sub).Update(ctx, o, options...) })
		},
		SubResourcePatch: func(ctx context.Context, s client.Client, sub string, o client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
			return c.write(Write{"patch/" + sub, o}, func() error { return s.SubResource(sub).Patch(ctx, o, p, options...) })
		},
	})
	return c
}

func (c *Client) write(w Write, do func() error) error {
	if c.Before != nil {
		if err := c.Before(w); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	if c.After != nil {
		return c.After(w)
	}
	return nil
}

package fakeapi

import (
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// Cache is a stale view of the server: held objects keep their old state.
type Cache struct {
	api  *API
	held map[string]client.Object // nil: the object is absent
	// frozen answers for all objects, if set.
	frozen client.Reader
}

// NewCache makes a cache that is up to date.
func (a *API) NewCache() *Cache { return &Cache{api: a, held: map[string]client.Object{}} }

func keyOf(o client.Object, key client.ObjectKey) string {
	return fmt.Sprintf("%T %s", o, key)
}

// Hold keeps showing the current state of the object that o names, even if it changes.
func (c *Cache) Hold(ctx context.Context, o client.Object) error {
	key := client.ObjectKeyFromObject(o)
	if _, ok := c.held[keyOf(o, key)]; ok {
		return nil
	}
	now, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is no object", o)
	}
	err := c.api.Get(ctx, key, now)
	if apierrors.IsNotFound(err) {
		now, err = nil, nil
	}
	c.held[keyOf(o, key)] = now
	return err
}

// Absent hides an object.
func (c *Cache) Absent(o client.Object) { c.held[keyOf(o, client.ObjectKeyFromObject(o))] = nil }

// Show shows the given state of an object.
func (c *Cache) Show(o client.Object) { c.held[keyOf(o, client.ObjectKeyFromObject(o))] = o }

// Release brings the cache up to date.
func (c *Cache) Release() { clear(c.held); c.frozen = nil }

// Freeze keeps showing the current objects of some kinds, and none of other kinds.
// slim reduces an object as the cache would; nil keeps the whole object.
func (c *Cache) Freeze(ctx context.Context, slim func(any) (any, error), lists ...client.ObjectList) error {
	builder := fake.NewClientBuilder().WithScheme(c.api.Scheme())
	for _, list := range lists {
		if err := c.api.List(ctx, list); err != nil {
			return err
		}
		err := meta.EachListItem(list, func(o runtime.Object) error {
			var kept any = o
			var err error
			if slim != nil {
				kept, err = slim(o)
			}
			builder.WithRuntimeObjects(kept.(runtime.Object))
			return err
		})
		if err != nil {
			return err
		}
	}
	c.frozen = builder.Build()
	return nil
}

// Get reads an object, in its held state.
func (c *Cache) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if c.frozen != nil {
		return c.frozen.Get(ctx, key, o, options...)
	}
	held, ok := c.held[keyOf(o, key)]
	switch {
	case !ok:
		return c.api.Get(ctx, key, o, options...)
	case held == nil:
		return apierrors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", o)}, key.Name)
	}
	reflect.ValueOf(o).Elem().Set(reflect.ValueOf(held.DeepCopyObject()).Elem())
	return nil
}

// List reads objects, in their held state. Selectors match the current state.
func (c *Cache) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if c.frozen != nil {
		return c.frozen.List(ctx, list, options...)
	}
	if err := c.api.List(ctx, list, options...); err != nil {
		return err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	var shown []runtime.Object
	seen := map[string]bool{}
	kind := ""
	for _, item := range items {
		o, ok := item.(client.Object)
		if !ok {
			return fmt.Errorf("%T is no object", item)
		}
		key := keyOf(o, client.ObjectKeyFromObject(o))
		kind, seen[key] = fmt.Sprintf("%T", o), true
		if held, ok := c.held[key]; !ok {
			shown = append(shown, o)
		} else if held != nil {
			shown = append(shown, held.DeepCopyObject())
		}
	}
	for key, held := range c.held {
		if held != nil && !seen[key] && (kind == fmt.Sprintf("%T", held) || kind == "" && fmt.Sprintf("%TList", held) == fmt.Sprintf("%T", list)) {
			shown = append(shown, held.DeepCopyObject())
		}
	}
	return meta.SetList(list, shown)
}

package fakeapi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// ErrCrashed is the error of each write of a crashed client.
var ErrCrashed = errors.New("the controller has crashed")

// Write is one write of a client.
type Write struct {
	// Verb is create, update, patch, delete, one of these with /status, or "dry-run create" or "dry-run delete",
	// which only Before sees.
	Verb   string
	Object client.Object
}

// String is "verb Kind/name".
func (w Write) String() string { return w.Verb + " " + KindOf(w.Object) + "/" + w.Object.GetName() }

// KindOf is the kind of an object or list, by its Go type.
func KindOf(o runtime.Object) string {
	kind := fmt.Sprintf("%T", o)
	return kind[strings.LastIndex(kind, ".")+1:]
}

// Client is a controller's client: its writes pass hooks, its reads may be stale.
type Client struct {
	client.WithWatch
	// Before is called with each write; an error replaces the write.
	Before func(Write) error
	// After is called when a write is done; the client gets its error.
	After func(Write) error
	// Reading is called before each read with the kind of the object or list; an error replaces the read.
	Reading func(o runtime.Object) error
	// Cache answers reads; nil is the server.
	Cache *Cache
	// Reader answers reads in place of the server and Cache, if set.
	Reader client.Reader
	// Now is when the client creates objects, if it is set.
	Now func() time.Time
	// Unbound are writes, as "delete Endpoints", that are meant for whatever has the name; all others are checked.
	Unbound []string
	// Writes are the writes that Before did not refuse.
	Writes []Write

	crashes, done bool
	crashAt       int
	writing       sync.Mutex // writes at once follow each other, with their hooks
}

// CrashAt makes the client crash at the n-th write from now, counted from 0, before or after the write is done.
func (c *Client) CrashAt(n int, done bool) {
	c.crashes, c.crashAt, c.done = true, len(c.Writes)+n, done
}

// Crashed reports whether the client has crashed: all its writes fail.
func (c *Client) Crashed() bool { return c.crashes && len(c.Writes) > c.crashAt }

// Wrote returns the writes as "verb Kind/name".
func (c *Client) Wrote() []string {
	var list []string
	for _, w := range c.Writes {
		list = append(list, w.String())
	}
	return list
}

// Client makes a client of the server.
func (a *API) Client() *Client {
	c := &Client{}
	reader := func(s client.Reader, o runtime.Object) (client.Reader, error) {
		if c.Reading != nil {
			if err := c.Reading(o); err != nil {
				return nil, err
			}
		}
		switch {
		case c.Reader != nil:
			return c.Reader, nil
		case c.Cache != nil:
			return c.Cache, nil
		}
		return s, nil
	}
	c.WithWatch = interceptor.NewClient(a.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, s client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			from, err := reader(s, o)
			if err != nil {
				return err
			}
			return from.Get(ctx, key, o, options...)
		},
		List: func(ctx context.Context, s client.WithWatch, l client.ObjectList, options ...client.ListOption) error {
			from, err := reader(s, l)
			if err != nil {
				return err
			}
			return from.List(ctx, l, options...)
		},
		Create: func(ctx context.Context, s client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if len((&client.CreateOptions{}).ApplyOptions(options).DryRun) > 0 {
				return c.try("create", o, func() error { return tryCreate(ctx, s, o) })
			}
			return c.write(Write{"create", o}, func() error {
				if c.Now != nil {
					o.SetCreationTimestamp(metav1.NewTime(c.Now()))
				}
				return s.Create(ctx, o, options...)
			})
		},
		Update: func(ctx context.Context, s client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			c.mustBeBound(Write{"update", o}, o.GetResourceVersion() != "")
			return c.write(Write{"update", o}, func() error { return s.Update(ctx, o, options...) })
		},
		Patch: func(ctx context.Context, s client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			c.mustBeBound(Write{"patch", o}, isBoundPatch(o, p))
			return c.write(Write{"patch", o}, func() error { return s.Patch(ctx, o, p, options...) })
		},
		Delete: func(ctx context.Context, s client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			if len((&client.DeleteOptions{}).ApplyOptions(options).DryRun) > 0 {
				return c.try("delete", o, func() error { return s.Get(ctx, client.ObjectKeyFromObject(o), o.DeepCopyObject().(client.Object)) })
			}
			c.mustBeBound(Write{"delete", o}, isBoundDelete(options))
			return c.write(Write{"delete", o}, func() error { return s.Delete(ctx, o, options...) })
		},
		SubResourceUpdate: func(ctx context.Context, s client.Client, sub string, o client.Object, options ...client.SubResourceUpdateOption) error {
			c.mustBeBound(Write{"update/" + sub, o}, o.GetResourceVersion() != "")
			return c.write(Write{"update/" + sub, o}, func() error { return s.SubResource(sub).Update(ctx, o, options...) })
		},
		SubResourcePatch: func(ctx context.Context, s client.Client, sub string, o client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
			c.mustBeBound(Write{"patch/" + sub, o}, isBoundPatch(o, p))
			return c.write(Write{"patch/" + sub, o}, func() error { return s.SubResource(sub).Patch(ctx, o, p, options...) })
		},
	})
	return c
}

// try is a dry run: nothing is written.
func (c *Client) try(verb string, o client.Object, do func() error) error {
	if c.Crashed() {
		return ErrCrashed
	}
	if c.Before != nil {
		if err := c.Before(Write{"dry-run " + verb, o}); err != nil {
			return err
		}
	}
	return do()
}

// tryCreate answers as the API server does, which looks for an existing object too.
func tryCreate(ctx context.Context, s client.Reader, o client.Object) error {
	err := s.Get(ctx, client.ObjectKeyFromObject(o), o.DeepCopyObject().(client.Object))
	if err == nil {
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: KindOf(o)}, o.GetName())
	}
	return client.IgnoreNotFound(err)
}

func (c *Client) write(w Write, do func() error) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.Crashed() {
		return ErrCrashed
	}
	if c.Before != nil {
		if err := c.Before(w); err != nil {
			return err
		}
	}
	c.Writes = append(c.Writes, w)
	crashed := c.Crashed()
	if crashed && !c.done {
		return ErrCrashed
	}
	if err := do(); err != nil {
		return err
	}
	if crashed {
		return ErrCrashed
	}
	if c.After != nil {
		return c.After(w)
	}
	return nil
}

package fakeapi

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// page is how many objects the API server sends in one answer.
const page = 500

// Counting counts requests as "verb Type", and gives lists in pages, as the API server does.
type Counting struct {
	client.WithWatch
	// Version of all lists, if set.
	Version string

	mu        sync.Mutex
	requests  []string
	unlimited []string
}

// Unlimited are the lists that had no limit, or a limit above a page.
func (c *Counting) Unlimited() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unlimited
}

// Requests since the last call.
func (c *Counting) Requests() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	requests := c.requests
	c.requests = nil
	return requests
}

// Count a request.
func (c *Counting) Count(verb string, o runtime.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, fmt.Sprintf("%s %T", verb, o))
}

// Get counts one request.
func (c *Counting) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	c.Count("get", o)
	return c.WithWatch.Get(ctx, key, o, opts...)
}

// List returns one page. A list without a limit counts as its number of pages.
func (c *Counting) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	limit, from := int(o.Limit), 0
	if o.Continue != "" {
		from, _ = strconv.Atoi(o.Continue)
	}
	o.Limit, o.Continue = 0, ""
	if err := c.WithWatch.List(ctx, list, o); err != nil {
		return err
	}
	if limit == 0 || limit > page {
		c.mu.Lock()
		c.unlimited = append(c.unlimited, fmt.Sprintf("%T", list))
		c.mu.Unlock()
	}
	items, err := meta.ExtractList(list)
	if c.Version != "" {
		list.SetResourceVersion(c.Version)
	}
	if limit == 0 {
		for range max(1, (len(items)+page-1)/page) {
			c.Count("list", list)
		}
		return err
	}
	c.Count("list", list)
	to := min(from+limit, len(items))
	if list.SetContinue(""); to < len(items) {
		list.SetContinue(strconv.Itoa(to))
	}
	return errors.Join(err, meta.SetList(list, items[from:to]))
}

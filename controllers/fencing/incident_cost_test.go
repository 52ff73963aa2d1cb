package fencing

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// pageSize is how many objects the API server is taken to send in one answer.
const pageSize = 500

const listVersion = "1000"

// counting answers in pages, and counts requests.
type counting struct {
	client.WithWatch
	requests []string
}

func (c *counting) count(verb string, o runtime.Object) error {
	c.requests = append(c.requests, fmt.Sprintf("%s %T", verb, o))
	return nil
}

func (c *counting) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	_ = c.count("get", o)
	return c.WithWatch.Get(ctx, key, o, opts...)
}

func (c *counting) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	limit, from := int(o.Limit), 0
	if o.Continue != "" {
		from, _ = strconv.Atoi(o.Continue)
	}
	o.Limit, o.Continue = 0, ""
	if err := c.WithWatch.List(ctx, list, &o); err != nil {
		return err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	list.SetResourceVersion(listVersion)
	if limit == 0 { // as many as if it had come in pages
		for range max(1, (len(items)+pageSize-1)/pageSize) {
			_ = c.count("list", list)
		}
		return nil
	}
	_ = c.count("list", list)
	if to := from + limit; to < len(items) {
		list.SetContinue(strconv.Itoa(to))
		return meta.SetList(list, items[from:to])
	}
	return meta.SetList(list, items[from:])
}

// What an incident asks of the API server does not grow with the cluster.
func TestIncidentCostsTheSameInLargeClusters(t *testing.T) {
	var costs []string
	for _, nodes := range []int{50, 1200} { // one page of nodes, and more
		w := newWorld(t, machines(nodes)...)
		api := w.counted()
		cost := fmt.Sprint("fenced ", w.requestsTo(api, func() {
			w.lose("node-1")
			w.look("node-1")
			w.taint("node-1", "nodeshutdown")
			w.look("node-1")
			w.csi()
			w.look("node-1")
			w.expect("node-1", v1alpha1.NodeFenced, fence.ReasonFenced)
		}))
		t.Logf("%d nodes: %v", nodes, api.requests)
		if len(api.requests) > 40 {
			t.Errorf("%d nodes: %d requests until a node is fenced", nodes, len(api.requests))
		}
		cost += fmt.Sprint(", drained ", w.requestsTo(api, func() {
			w.detach("pvc-a", "node-1")
			w.look("node-1")
			w.expect("node-1", v1alpha1.NodeDrained, fence.ReasonDrained)
		}))
		cost += fmt.Sprint(", back ", w.requestsTo(api, func() {
			w.boot("node-1")
			w.untaint("node-1")
			w.look("node-1")
			w.step(fence.DefaultReadyFor)
			w.look("node-1")
			w.csi()
			w.look("node-1")
			w.look("node-1")
			w.expect("node-1", v1alpha1.NodeHealthy, fence.ReasonReady)
		}))
		costs = append(costs, cost)
	}
	t.Log("requests:", costs[1])
	if costs[0] != costs[1] {
		t.Errorf("in a small cluster %s, and in a large one %s", costs[0], costs[1])
	}
}

// counted counts what the controller asks of the API server from now on; its caches are as new as that.
func (w *world) counted() *counting {
	w.look("node-1")
	api := &counting{WithWatch: w.Client.(client.WithWatch)}
	w.funcs = interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			return api.count("create", o)
		},
		Delete: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
			return api.count("delete", o)
		},
		Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
			return api.count("patch", o)
		},
		SubResourceUpdate: func(_ context.Context, _ client.Client, _ string, o client.Object, _ ...client.SubResourceUpdateOption) error {
			return api.count("update", o)
		},
	}
	w.r.API = api
	w.r.Cached = cluster.NewFenceReader(w.config, w.Client, w.Client, api).WithIndexes()
	w.r.Live = w.r.Cached.Live(func(context.Context) string { return listVersion })
	return api
}

// requestsTo get something done.
func (w *world) requestsTo(api *counting, do func()) int {
	w.Helper()
	api.requests = nil
	do()
	return len(api.requests)
}

// machines are healthy nodes and their records, beside those of the world.
func machines(count int) []client.Object {
	var all []client.Object
	for i := range count {
		name, address := fmt.Sprintf("worker-%d", i), fmt.Sprintf("10.0.%d.%d", i/250, i%250+1)
		n := node(name, address)
		record := &v1alpha1.NodeFence{}
		record.Name, record.Labels = name, map[string]string{fence.PhaseLabel: string(v1alpha1.NodeHealthy)}
		record.Status = v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeHealthy, Reason: fence.ReasonReady, Node: cluster.FenceNode(n).Machine}
		volume, at := volume("pvc-"+name, rbd, "rook-ceph"), attachment("pvc-"+name, name)
		all = append(all, n, record, volume, at, clientPod("csi-rbdplugin-"+name, name))
	}
	return all
}

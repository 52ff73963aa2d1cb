package fencing

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/fencing"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
)

// pageSize is how many objects the API server sends in one answer.
const pageSize = 500

const listVersion = "1000"

// counting answers lists in pages, and counts requests.
type counting struct {
	client.WithWatch
	requests []string
}

func (c *counting) count(verb string, o runtime.Object) {
	c.requests = append(c.requests, fmt.Sprintf("%s %T", verb, o))
}

func (c *counting) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	c.count("get", o)
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
	if limit == 0 { // counted as if it had come in pages
		for range max(1, (len(items)+pageSize-1)/pageSize) {
			c.count("list", list)
		}
		return nil
	}
	c.count("list", list)
	if to := from + limit; to < len(items) {
		list.SetContinue(strconv.Itoa(to))
		return meta.SetList(list, items[from:to])
	}
	return meta.SetList(list, items[from:])
}

func TestIncidentCostsTheSameInLargeClusters(t *testing.T) {
	var costs []string
	for _, nodes := range []int{50, 1200} { // one page of nodes, and more
		w := newWorld(t, machines(nodes)...)
		api := w.counted()
		cost := fmt.Sprint("fenced ", w.requestsTo(api, func() {
			w.lose("node-1")
			w.look()
			w.taint("node-1", "nodeshutdown")
			w.look()
			w.lookAfterCSI()
			w.mustBe(v1alpha1.NodeFenced, fence.ReasonFenced)
		}))
		t.Logf("%d nodes: %v", nodes, api.requests)
		if len(api.requests) > 40 {
			t.Errorf("%d nodes: %d requests until a node is fenced", nodes, len(api.requests))
		}
		cost += fmt.Sprint(", drained ", w.requestsTo(api, func() {
			w.detach("pvc-a", "node-1")
			w.look()
			w.mustBe(v1alpha1.NodeDrained, fence.ReasonDrained)
		}))
		cost += fmt.Sprint(", back ", w.requestsTo(api, func() {
			w.comeBack()
			w.look()
			w.lookAfterCSI()
			w.look()
			w.mustBe(v1alpha1.NodeHealthy, fence.ReasonReady)
		}))
		costs = append(costs, cost)
	}
	t.Log("requests:", costs[1])
	if costs[0] != costs[1] {
		t.Errorf("in a small cluster %s, and in a large one %s", costs[0], costs[1])
	}
}

// counted counts the controller's requests from now on. Its caches are up to date.
func (w *world) counted() *counting {
	w.look()
	api := &counting{WithWatch: w.API}
	w.Client.Before = func(write fakeapi.Write) error {
		api.count(write.Verb, write.Object)
		return nil
	}
	w.r.API = api
	w.r.Cached = fencing.NewFenceReader(w.config, w.API, w.API, api).WithIndexes()
	w.r.Live = w.r.Cached.Live(func(context.Context) string { return listVersion })
	return api
}

// requestsTo counts the requests of a step.
func (w *world) requestsTo(api *counting, do func()) int {
	w.Helper()
	api.requests = nil
	do()
	return len(api.requests)
}

// machines are further healthy nodes and their records.
func machines(count int) []client.Object {
	var all []client.Object
	for i := range count {
		name, address := fmt.Sprintf("worker-%d", i), fmt.Sprintf("10.0.%d.%d", i/250, i%250+1)
		n := node(name, address)
		record := &v1alpha1.NodeFence{}
		record.Name, record.Labels = name, map[string]string{fence.PhaseLabel: string(v1alpha1.NodeHealthy)}
		record.Status = v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeHealthy, Reason: fence.ReasonReady, Node: fencing.FenceNode(n).Machine}
		volume, at := volume("pvc-"+name, rbd, "rook-ceph"), attachment("pvc-"+name, name)
		all = append(all, n, record, volume, at, clientPod("csi-rbdplugin-"+name, name))
	}
	return all
}

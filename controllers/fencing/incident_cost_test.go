package fencing

import (
	"context"
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

const listVersion = "1000"

func TestIncidentCostsTheSameInLargeClusters(t *testing.T) {
	must.HaveTime(t)
	var costs []string
	for _, nodes := range []int{50, 600} { // one page of nodes, and more
		w := newWorld(t, machines(nodes)...)
		api := w.counted()
		cost := fmt.Sprint("fenced ", w.requestsTo(api, 40, func() {
			w.lose("node-1").look().taint("node-1", "nodeshutdown").look().lookAfterCSI().mustBeFenced()
		}))
		cost += fmt.Sprint(", drained ", w.requestsTo(api, 1000, func() {
			w.detach("pvc-a", "node-1").look().mustBe(v1alpha1.NodeDrained, fence.ReasonDrained)
		}))
		cost += fmt.Sprint(", back ", w.requestsTo(api, 1000, func() { w.returnRebooted().look().lookAfterCSI().look().mustBeHealthy() }))
		costs = append(costs, cost)
	}
	t.Log("requests:", costs[1])
	must.True(t, costs[0] == costs[1], "in a small cluster %s, and in a large one %s", costs[0], costs[1])
}

// counted counts the controller's requests from now on. Its caches are up to date.
func (w *world) counted() *fakeapi.Counting {
	w.look()
	api := &fakeapi.Counting{WithWatch: w.API, Version: listVersion}
	w.Client.Before = func(write fakeapi.Write) error {
		api.Count(write.Verb, write.Object)
		return nil
	}
	w.r.API = api
	w.reads(w.API, api)
	w.r.Reader = fencingreads.NewFenceReader(w.config, w.API, api, func(context.Context) string { return listVersion }, w.r.Held)
	return api
}

// requestsTo counts the requests of a step, and allows so many.
func (w *world) requestsTo(api *fakeapi.Counting, most int, do func()) int {
	w.Helper()
	api.Requests()
	do()
	requests := api.Requests()
	must.True(w, len(requests) <= most, "%d requests: %v", len(requests), requests)
	return len(requests)
}

// machines are further healthy nodes and their records.
func machines(count int) []client.Object {
	var all []client.Object
	for i := range count {
		name, address := fmt.Sprintf("worker-%d", i), fmt.Sprintf("10.0.%d.%d", i/250, i%250+1)
		n := node(name, address)
		record := &v1alpha1.NodeFence{}
		record.Name, record.Labels = name, map[string]string{fence.PhaseLabel: string(v1alpha1.NodeHealthy)}
		record.Status = v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeHealthy, Reason: fence.ReasonReady, Node: fencingreads.FenceNode(n).Machine}
		volume, at := volume("pvc-"+name), attachment("pvc-"+name, name)
		all = append(all, n, record, volume, at, clientPod(name))
	}
	return all
}

package fencing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

// rack is a world with more nodes, each with a volume.
type rack struct {
	*world
	names []string
}

func newRack(t *testing.T, size, nodes int) rack {
	t.Helper()
	var r rack
	for i := range size {
		r.names = append(r.names, fmt.Sprintf("worker-%d", i))
	}
	r.world = newWorld(t, slices.DeleteFunc(machines(nodes), func(o client.Object) bool {
		_, record := o.(*v1alpha1.NodeFence)
		return record && slices.Contains(r.names, o.GetName()) // the controller makes the records of the rack
	})...)
	_, err := r.together()
	must.Do(t, err)
	return r
}

// lost at once, and tainted.
func (r rack) lost() rack {
	r.Helper()
	r.pass(1)
	for _, name := range r.names {
		r.lose(name).taint(name, "nodeshutdown")
	}
	return r
}

// together looks at all nodes of the rack, until each waits for others.
func (r rack) together() (rounds int, err error) {
	r.Helper()
	for held, objects := range r.lists {
		r.Must(held.List(r.Context(), objects))
	}
	r.r.incidents.ShutDown()
	r.r.prepare()
	queue := r.r.incidents
	for _, name := range r.names {
		r.watch(name)
		_, problem := r.r.Reconcile(context.Background(), kit.Request(name)[0])
		err = errors.Join(err, problem)
	}
	for ; queue.Len() > 0; rounds++ {
		must.True(r, rounds < 20, "the nodes are never settled")
		first, _ := queue.Get()
		for name, o := range r.r.roundOf(context.Background(), first) {
			err = errors.Join(err, o.err)
			if o.after == behind {
				queue.Add(name)
			}
		}
	}
	return rounds, err
}

func (r rack) mustAllBe(phase v1alpha1.NodeFencePhase) {
	r.Helper()
	for _, name := range r.names {
		r.recordMustBe(name, phase, fence.ReasonFenced)
	}
}

// count the requests of a kind.
func count(requests []string, kind string) (n int) {
	for _, request := range requests {
		if strings.Contains(request, kind) {
			n++
		}
	}
	return n
}

func TestRackCostsAFewRequestsForEachNode(t *testing.T) {
	must.HaveTime(t)
	const size, nodes = 20, 510 // more nodes than a page
	r := newRack(t, size, nodes)
	api := &fakeapi.Counting{WithWatch: r.API, Version: listVersion}
	r.Client.Before = func(write fakeapi.Write) error { api.Count(write.Verb, write.Object); return nil }
	r.lost()
	r.r.API = api
	r.reads(r.API, api)
	r.r.Reader = fencingreads.NewFenceReader(r.config, r.API, api, func(context.Context) string { return listVersion }, r.r.Held)
	api.Requests()
	first, err := r.together()
	must.Do(t, err)
	r.csi()
	second, err := r.together()
	must.Do(t, err)
	r.mustAllBe(v1alpha1.NodeFenced)
	requests, rounds := api.Requests(), first+second
	for kind, want := range map[string]int{
		"list *v1.PartialObjectMetadataList": rounds, "list *v1alpha1.NodeFenceList": rounds, "list *csiaddons.NetworkFenceList": rounds, "list *v1.NodeList": 0,
		"get *v1.Node": size, "get *v1alpha1.NodeFence": 0, "create *csiaddons.NetworkFence": size,
	} {
		must.True(t, count(requests, kind) == want, "%d times %s, want %d in %d rounds", count(requests, kind), kind, want, rounds)
	}
	t.Logf("%d rounds, %d requests for each node", rounds, len(requests)/size)
	must.True(t, len(requests) <= 11*size, "%d requests for %d nodes", len(requests), size)
}

// Two lost nodes have had one address: what is decided about one may change what is right for the other.
func TestNodesWithOneAddressAreDecidedInTurn(t *testing.T) {
	r := newRack(t, 2, 2)
	for _, name := range r.names {
		r.change(name, func(n *corev1.Node) { n.Status.Addresses[1].Address = "10.0.9.9" })
	}
	r.lost()
	for held, objects := range r.lists {
		r.Must(held.List(r.Context(), objects))
	}
	record := r.record("worker-1")
	record.Status.Identities[0].Addresses[0].CIDR = r.record("worker-0").Status.Identities[0].Addresses[0].CIDR
	r.Must(r.Status().Update(t.Context(), record))
	all := r.r.round(t.Context(), r.names)
	first, second := "worker-0", "worker-1"
	if all[first].after == behind {
		first, second = second, first
	}
	must.True(t, all[first].err == nil && all[second].after == behind, "got %+v", all)
	r.recordMustBe(first, v1alpha1.NodeFencing, fence.ReasonFencing).recordMustBe(second, v1alpha1.NodeHealthy, fence.ReasonReady)
}

// The leader loses its lease at any write of an incident of many nodes. The next leader ends the incident: each node is fenced
// by one NetworkFence, and none is unfenced.
func TestNextLeaderEndsTheIncidentOfARack(t *testing.T) {
	const size = 8
	for at := 0; ; at += 5 {
		r := newRack(t, size, size).lost()
		r.forgetWrites().Client.CrashAt(at, at%2 == 0)
		_, err := r.together()
		crashed := errors.Is(err, fakeapi.ErrCrashed)
		must.True(t, crashed || err == nil, "write %d: %v", at, err)
		r.restart()
		for range 3 {
			_, err := r.together()
			must.Do(t, err)
			for _, n := range r.fences() {
				must.True(t, n.Spec.FenceState == csiaddons.Fenced, "write %d: %s unfences", at, n.Name)
			}
			r.csi()
		}
		r.mustAllBe(v1alpha1.NodeFenced)
		must.True(t, len(r.fences()) == size, "write %d: %d NetworkFences", at, len(r.fences()))
		if !crashed {
			return
		}
	}
}

// While a rack is fenced, the records of healthy nodes are kept.
func TestIncidentDelaysNoLedger(t *testing.T) {
	r := newRack(t, 3, 3).lost()
	for _, name := range r.names {
		r.r.incidents.Add(name) // no round runs
	}
	r.create(volume("pvc-late")).create(objects.Attachment("pvc-late", "node-2", rbd))
	for held, objects := range r.lists {
		r.Must(held.List(r.Context(), objects))
	}
	_, err := r.r.Reconcile(t.Context(), kit.Request("node-2")[0])
	must.Do(t, err)
	must.True(t, slices.Contains(fence.VolumeNames(r.record("node-2").Status.Volumes), "pvc-late"), "not on record")
	must.Equal(t, r.r.incidents.Len(), len(r.names))
}

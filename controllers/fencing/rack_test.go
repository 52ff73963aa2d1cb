package fencing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
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
		record, is := o.(*v1alpha1.NodeFence)
		return is && slices.Contains(r.names, record.Spec.NodeName) // the controller makes the records of the rack
	})...)
	must.Do(t, r.together())
	return r
}

// lost at once, and tainted.
func (r rack) lost() rack { r.Helper(); return r.silent().tainted() }

func (r rack) silent() rack {
	r.Helper()
	r.pass(time.Minute)
	for _, name := range r.names {
		r.lose(name)
	}
	return r
}

func (r rack) tainted() rack {
	r.Helper()
	for _, name := range r.names {
		r.taint(name, "nodeshutdown")
	}
	return r
}

// together looks at all nodes of the rack side by side, until each waits for others.
func (r rack) together() error {
	r.Helper()
	names, errs := r.names, error(nil)
	for range 20 {
		var group errgroup.Group
		group.SetLimit(workers)
		var mu sync.Mutex
		var again []string
		for _, name := range names {
			r.watch(name)
		}
		r.watched()
		for _, name := range names {
			group.Go(func() error {
				result, err := r.r.Reconcile(context.Background(), kit.Request(name)[0])
				mu.Lock()
				defer mu.Unlock()
				if errs = errors.Join(errs, err); err == nil && result.RequeueAfter == behind {
					again = append(again, name)
				}
				return nil
			})
		}
		if _ = group.Wait(); len(again) == 0 {
			return errs
		}
		names = again
	}
	return errors.New("the nodes are never settled")
}

func (r rack) mustAllBe(phase v1alpha1.NodeFencePhase, reason string) rack {
	r.Helper()
	for _, name := range r.names {
		r.recordMustBe(recordOf(name, ""), phase, reason)
	}
	return r
}

// slowly counts requests to an API server that takes a moment for what all workers share.
func (r rack) slowly() *fakeapi.Counting {
	api := r.counted()
	live := r.API.Client()
	live.Reader = api
	live.Reading = func(o runtime.Object) error {
		if _, shared := o.(*v1alpha1.NodeFenceList); shared {
			time.Sleep(20 * time.Millisecond)
		}
		return nil
	}
	r.reads(r.API, live)
	return api
}

// A whole incident costs a few requests for each node. What all nodes share is read once for many.
func TestRackCostsAFewRequestsForEachNode(t *testing.T) {
	must.HaveTime(t)
	const size, nodes = 2 * workers, 510 // more nodes than a page
	for name, test := range map[string]struct {
		lose       func(rack)
		looks, own int // for each node
	}{
		"silent and tainted at once": {func(r rack) { r.lost() }, 2, 11},
		"silent, and tainted later": {func(r rack) {
			r.Must(r.silent().together())
			r.mustAllBe(v1alpha1.NodeLost, fence.ReasonNotReady).tainted()
		}, 3, 17},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRack(t, size, nodes)
			api := r.slowly()
			test.lose(r)
			must.Do(t, r.together())
			r.mustAllBe(v1alpha1.NodeFencing, fence.ReasonFencing).csi()
			must.Do(t, r.together())
			r.mustAllBe(v1alpha1.NodeFenced, fence.ReasonFenced)
			requests, each := api.Requests(), map[string]int{}
			for _, request := range requests {
				each[request]++
			}
			t.Logf("%.1f requests for each node: %v", float64(len(requests))/size, each)
			own := len(requests) - each["get *v1alpha1.NodeFence"] // records that change while they are listed
			for _, kind := range []string{"list *v1.PartialObjectMetadataList", "list *v1alpha1.NodeFenceList", "list *csiaddons.NetworkFenceList"} {
				own -= each[kind]
				must.Check(t, each[kind] <= size*test.looks/4, "%d times %s", each[kind], kind)
			}
			must.Check(t, each["list *v1.NodeList"] == 0 && each["get *v1alpha1.NodeFence"] < size && each["create *csiaddons.NetworkFence"] == size, "got %v", each)
			must.Check(t, own <= test.own*size, "%d own requests of %d nodes", own, size)
		})
	}
}

// Two lost nodes have had one address: what is decided about one may change what is right for the other.
func TestNodesWithOneAddressAreDecidedInTurn(t *testing.T) {
	r := newRack(t, 2, 2)
	for _, name := range r.names {
		r.change(name, func(n *corev1.Node) { n.Status.Addresses[1].Address = "10.0.9.9" })
	}
	r.lost()
	record := r.record(recordOf("worker-1", ""))
	record.Spec.Identities[0].Addresses[0].CIDR = r.record(recordOf("worker-0", "")).Spec.Identities[0].Addresses[0].CIDR
	r.Must(r.Update(t.Context(), record))
	now, err := r.watched().r.Reader.Live(t.Context())
	must.Do(t, err)
	look := func(name string) time.Duration {
		views, err := r.r.views(t.Context(), now, name)
		must.Do(t, err)
		after, err := r.r.carryOut(t.Context(), t.Context(), now, views[0], true)
		must.Do(t, err)
		return after
	}
	must.True(t, look("worker-0") != behind && look("worker-1") == behind, "both are decided by one snapshot")
	r.recordMustBe(recordOf("worker-0", ""), v1alpha1.NodeFencing, fence.ReasonFencing)
	must.Equal(t, r.record(recordOf("worker-1", "")).Spec.LostSince, nil)
	must.Do(t, r.together())
	r.csi()
	must.Do(t, r.together())
	r.mustAllBe(v1alpha1.NodeFenced, fence.ReasonFenced)
}

// The leader loses its lease at any write of an incident of many nodes. The next leader ends the incident: each node is fenced
// by one NetworkFence, and none is unfenced.
func TestNextLeaderEndsTheIncidentOfARack(t *testing.T) {
	const size = 8
	for at := 0; ; at += 5 {
		r := newRack(t, size, size).lost()
		r.forgetWrites().Client.CrashAt(at, at%2 == 0)
		err := r.together()
		crashed := errors.Is(err, fakeapi.ErrCrashed)
		must.True(t, crashed || err == nil, "write %d: %v", at, err)
		r.restart()
		for range 3 {
			must.Do(t, r.together())
			for _, n := range r.fences() {
				must.True(t, n.Spec.FenceState == csiaddons.Fenced, "write %d: %s unfences", at, n.Name)
			}
			r.csi()
		}
		r.mustAllBe(v1alpha1.NodeFenced, fence.ReasonFenced)
		must.True(t, len(r.fences()) == size, "write %d: %d NetworkFences", at, len(r.fences()))
		if !crashed {
			return
		}
	}
}

// The storage may take many seconds to answer: no look waits for it, and no question ends with the look that asked.
func TestSlowStorageDelaysNoOtherNode(t *testing.T) {
	r := newRack(t, 2, 2).lost()
	answer, answered, ended := make(chan bool), make(chan string, 2), error(nil)
	r.r.lookAt = func(node string) { answered <- node }
	r.r.Ask = func(ctx context.Context, f fence.Facts) (fence.Report, error) {
		if f.Node.Name == "worker-0" {
			<-answer
			ended = ctx.Err()
		}
		return fence.Report{}, nil
	}
	must.Do(t, r.together())
	must.Equal(t, <-answered, "worker-1")
	must.Do(t, r.together())
	r.forgetWrites()
	must.Do(t, r.together())
	r.mustHaveWritten() // looks while the storage is asked
	r.recordMustBe(recordOf("worker-0", ""), v1alpha1.NodeFencing, fence.ReasonFencing, "the storage is asked").mustHaveFences("Fenced 10.0.0.2/32")
	close(answer)
	must.Equal(t, <-answered, "worker-0")
	must.True(t, ended == nil, "the question ended with the look that asked it: %v", ended)
	must.Do(t, r.together())
	r.mustHaveFences("Fenced 10.0.0.1/32", "Fenced 10.0.0.2/32")
}

const listVersion = "1000"

// counted counts the controller's requests from now on. Its caches are up to date.
func (w *world) counted() *fakeapi.Counting {
	w.Helper()
	api := &fakeapi.Counting{WithWatch: w.API, Version: listVersion}
	w.Client.Before = func(write fakeapi.Write) error {
		api.Count(write.Verb, write.Object)
		return nil
	}
	w.r.API = api
	w.reads(w.API, api)
	return api
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

// machines are further healthy nodes and their records.
func machines(count int) []client.Object {
	var all []client.Object
	for i := range count {
		name, address := fmt.Sprintf("worker-%d", i), fmt.Sprintf("10.0.%d.%d", i/250, i%250+1)
		n := node(name, address)
		record := &v1alpha1.NodeFence{}
		record.Name, record.Labels = recordOf(name, ""), map[string]string{fence.NodeLabel: name}
		record.Spec = v1alpha1.NodeFenceSpec{NodeName: name, Boot: fencingreads.FenceNode(n).Boot}
		record.Status = v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeHealthy, Reason: fence.ReasonReady}
		volume, at := volume("pvc-"+name), attachment("pvc-"+name, name)
		all = append(all, n, record, volume, at, clientPod(name))
	}
	return all
}

package fencing_test

import (
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/bench/apiserver"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/cluster/caches"
	"github.com/fairlead-io/fairlead/internal/cluster/fencing"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// The controller compares the cache's copy of a Node with a live read before it records a loss.
func TestCopyOfANodeEqualsALiveRead(t *testing.T) {
	scheme := testkit.Value[*runtime.Scheme](t)(cluster.NewScheme())
	server := testkit.Value[*apiserver.Server](t)(apiserver.NewFencing(scheme, apiserver.FencingSize{Nodes: 3, VolumesEach: 2}))
	options, err := caches.ControllerCache(nil, fencingOfBench())
	must.Do(t, err)
	options.Scheme = scheme
	objects := apiserver.StartCache(t, server, options, func(cache.Cache) error { return nil })
	listening := httptest.NewServer(server)
	defer listening.Close()
	live, err := client.New(&rest.Config{Host: listening.URL, QPS: -1}, client.Options{Scheme: scheme, Mapper: server.Mapper()})
	must.Do(t, err)
	var copied, node corev1.Node
	must.Do(t, objects.Get(t.Context(), client.ObjectKey{Name: apiserver.NodeName(1)}, &copied))
	must.Do(t, live.Get(t.Context(), client.ObjectKeyFromObject(&copied), &node))
	must.True(t, len(node.Status.VolumesInUse) > 0 && !fencing.FenceNodeChanged(&copied, &node), "got %+v, want %+v", fencing.FenceNode(&copied), fencing.FenceNode(&node))
	node.Status.VolumesInUse = node.Status.VolumesInUse[1:]
	must.True(t, fencing.FenceNodeChanged(&copied, &node), "a released volume is no change")
}

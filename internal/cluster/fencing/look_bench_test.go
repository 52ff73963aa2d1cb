package fencing_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/fairlead-io/fairlead/bench/apiserver"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/cluster/caches"
	"github.com/fairlead-io/fairlead/internal/cluster/fencing"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// BenchmarkFenceLook measures one look at a healthy node with 20 volumes, in clusters of several sizes: it
// should cost what is on the node.
func BenchmarkFenceLook(b *testing.B) {
	for _, nodes := range []int{50, 500, 5000} {
		reader := fenceReader(b, nodes)
		look := func() {
			views, err := reader.Views(b.Context(), "node-007", time.Now())
			must.Do(b, err)
			if len(views) != 1 || len(views[0].Facts.Holding) != 20 || len(views[0].Facts.Ledger) != 1 || len(views[0].Facts.Ledger[0].Addresses) != 1 {
				b.Fatalf("the node is not as it should be: %+v", views[0].Facts)
			}
		}
		look() // informers start
		b.Run(fmt.Sprintf("%d nodes", nodes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				look()
			}
		})
	}
}

// fenceReader reads from a cache as the fencing controller's.
func fenceReader(tb testing.TB, nodes int) *fencing.FenceReader {
	tb.Helper()
	scheme := testkit.Value[*runtime.Scheme](tb)(cluster.NewScheme())
	server, err := apiserver.NewFencing(scheme, apiserver.FencingSize{Nodes: nodes, VolumesEach: 20})
	must.Do(tb, err)
	configured := fencingOfBench()
	options, err := caches.ControllerCache(nil, configured)
	must.Do(tb, err)
	options.Scheme = scheme
	var reader *fencing.FenceReader
	apiserver.StartCache(tb, server, options, func(objects cache.Cache) error {
		reader = fencing.NewFenceReader(configured, objects, objects).SharingPods()
		return errors.Join(cluster.IndexClaims(tb.Context(), objects), fencing.IndexFencing(tb.Context(), objects), reader.IndexAddons(tb.Context(), objects))
	})
	return reader
}

func fencingOfBench() config.Fencing {
	return config.Fencing{CephClients: config.CephClients{Mode: config.Off}, Profiles: []config.FencingProfile{{Name: "rook-ceph", Namespace: "rook-ceph", Mode: config.Fence}}}
}

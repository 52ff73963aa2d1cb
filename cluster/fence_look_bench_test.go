package cluster_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	config "github.com/fairlead-io/fairlead/api/config/v1alpha1"
	"github.com/fairlead-io/fairlead/bench/apiserver"
	"github.com/fairlead-io/fairlead/cluster"
)

// BenchmarkFenceLook measures one look at a healthy node with 20 volumes, in clusters of several sizes: it
// should cost what is on the node.
func BenchmarkFenceLook(b *testing.B) {
	for _, nodes := range []int{50, 500, 5000} {
		reader := fenceReader(b, nodes)
		look := func() {
			views, err := reader.Views(b.Context(), "node-007", time.Unix(0, 0))
			if err != nil {
				b.Fatal(err)
			}
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
func fenceReader(tb testing.TB, nodes int) *cluster.FenceReader {
	tb.Helper()
	scheme, err := cluster.NewScheme()
	if err != nil {
		tb.Fatal(err)
	}
	server, err := apiserver.NewFencing(scheme, nodes, 20)
	if err != nil {
		tb.Fatal(err)
	}
	listening := httptest.NewServer(server)
	fencing := config.Fencing{Profiles: []config.FencingProfile{{Name: "rook-ceph", Namespace: "rook-ceph", Mode: config.Fence}}}
	options, err := cluster.ControllerCache(nil, fencing)
	if err != nil {
		tb.Fatal(err)
	}
	options.Scheme, options.Mapper = scheme, server.Mapper()
	objects, err := cache.New(&rest.Config{Host: listening.URL, QPS: -1}, options)
	if err != nil {
		tb.Fatal(err)
	}
	reader := cluster.NewFenceReader(fencing, objects, objects, objects).WithIndexes()
	if err := cluster.IndexClaims(tb.Context(), objects); err != nil {
		tb.Fatal(err)
	}
	if err := cluster.IndexHandles(tb.Context(), objects); err != nil {
		tb.Fatal(err)
	}
	for _, index := range cluster.FenceIndexes() {
		if err := objects.IndexField(tb.Context(), index.Object, index.Field, index.Keys); err != nil {
			tb.Fatal(err)
		}
	}
	if err := reader.IndexAddons(tb.Context(), objects); err != nil {
		tb.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- objects.Start(ctx) }()
	tb.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			tb.Error(err)
		}
		listening.CloseClientConnections()
		listening.Close()
	})
	if !objects.WaitForCacheSync(ctx) {
		tb.Fatal("the cache did not start")
	}
	return reader
}

package cluster_test

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/fairlead-io/fairlead/bench/apiserver"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/cluster/caches"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/storage"
	"github.com/fairlead-io/fairlead/internal/storage/longhorn"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// busy is the cluster that controllers are measured with: each of 5,000 workloads
// has a claim, and 1,000 RWX volumes are served.
var busy = apiserver.Size{PersistentVolumes: 5_000, Volumes: 1_000, Nodes: 500}

// cachedReader reads from a cache as the controller's.
func cachedReader(tb testing.TB, size apiserver.Size) *cluster.Reader {
	tb.Helper()
	scheme, err := cluster.NewScheme()
	must.Do(tb, err)
	server, err := apiserver.New(scheme, size)
	must.Do(tb, err)
	profile := longhorn.Profile()
	options, err := caches.ControllerCache([]storage.Profile{profile}, config.Fencing{})
	must.Do(tb, err)
	options.Scheme = scheme
	objects := apiserver.StartCache(tb, server, options, func(objects cache.Cache) error { return cluster.IndexNodes(tb.Context(), objects) })
	return cluster.NewReader(profile, objects, objects)
}

// BenchmarkGather measures what an event costs that makes a controller gather all
// facts: those of the roll-out, and those of all settings.
func BenchmarkGather(b *testing.B) {
	reader := cachedReader(b, busy)
	now := time.Unix(0, 0)
	for name, gather := range map[string]func() error{
		"rollout": func() error {
			_, err := reader.Rollout(b.Context(), now)
			return err
		},
		"requests": func() error {
			_, err := reader.Requests(b.Context())
			return err
		},
		"clients of a node": func() error {
			_, err := reader.ClientsOn(b.Context(), "node-7")
			return err
		},
		"facts": func() error {
			_, err := reader.Facts(b.Context(), cluster.FactsOptions{Now: now})
			return err
		},
	} {
		must.Do(b, gather()) // informers start
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				must.Do(b, gather())
			}
		})
	}
}

package rollout

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/internal/cluster"
)

func TestProgressIsWrittenEveryFiveSeconds(t *testing.T) {
	f := newFixture(t, netOne)
	f.comeToRest()
	nodes := func(n int32) {
		var ds appsv1.DaemonSet
		f.Must(f.API.Get(t.Context(), cluster.DaemonSetKey(profile), &ds))
		ds.Status.DesiredNumberScheduled = n
		f.Must(f.API.Status().Update(t.Context(), &ds))
	}
	nodes(2)
	result, err := f.r.Reconcile(t.Context(), ctrl.Request{})
	f.Must(err)
	if got := f.rollout().Status.Clients.Total; got != 1 || result.RequeueAfter != progressEvery {
		t.Fatalf("%d clients are reported at once; the next look is in %s", got, result.RequeueAfter)
	}
	f.Clock.SetTime(noon.Add(progressEvery))
	f.Must(f.reconcile())
	if got := f.rollout().Status.Clients.Total; got != 2 {
		t.Fatalf("%d clients are reported after %s", got, progressEvery)
	}
	// Another network to change to is news.
	f.choose(netTwo)
	f.Must(f.reconcile())
	f.Must(f.reconcile())
	if got := f.rollout().Status.Desired; got != netTwo.String() {
		t.Fatalf("the network that is wanted is %q", got)
	}
}

// Multus that is installed later is no event: there is no kind to watch before.
func TestNetworksAreWatchedOnceInstalled(t *testing.T) {
	f := newFixture(t, netOne)
	f.comeToRest()
	watched, installed := 0, false
	f.r.watchNetworks = func() error { watched++; return nil }
	multus := interceptor.NewClient(f.API, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if !installed && list.GetObjectKind().GroupVersionKind().Group == cluster.NetworkKind.Group {
			return &meta.NoKindMatchError{GroupKind: cluster.NetworkKind.GroupKind()}
		}
		return c.List(ctx, list, opts...)
	}})
	reader := cluster.NewReader(profile, multus, multus)
	f.r.Cached, f.r.Live = reader, reader
	result, err := f.r.Reconcile(t.Context(), ctrl.Request{})
	f.Must(err)
	if watched != 0 || result.RequeueAfter != 30*time.Second {
		t.Fatalf("watched %d times, next look in %s", watched, result.RequeueAfter)
	}
	installed = true
	for range 2 {
		f.Must(f.reconcile())
	}
	if watched != 1 {
		t.Fatalf("watched %d times", watched)
	}
}

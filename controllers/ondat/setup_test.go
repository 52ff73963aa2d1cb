package ondat

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// The whole controller, in a manager: it polls when it starts, and a Service that is
// deleted comes back on its event, long before the next poll.
func TestControllerInAManager(t *testing.T) {
	w := newWorld(t)
	informers := &informers{FakeInformers: informertest.FakeInformers{Scheme: w.API.Scheme()}}
	mgr, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, manager.Options{
		Scheme: w.API.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		NewCache:  func(*rest.Config, cache.Options) (cache.Cache, error) { return informers, nil },
		NewClient: func(*rest.Config, client.Options) (client.Client, error) { return w.Client, nil },
	})
	w.Must(err)
	w.r.Clock = clock.RealClock{}
	w.r.Config.APIPollInterval.Duration = time.Hour // what follows is on events
	w.Must(w.r.SetupWithManager(mgr))
	w.share("10.0.0.1:32001")
	set, created := make(chan struct{}, 10), make(chan *corev1.Service, 10)
	w.Before(func(r *http.Request) {
		if r.Method == http.MethodPut {
			set <- struct{}{}
		}
	})
	w.Client.After = func(write fakeapi.Write) error {
		if s, ok := write.Object.(*corev1.Service); ok && write.Verb == "create" {
			created <- s.DeepCopy()
		}
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- mgr.Start(ctx) }()
	wait(t, set)
	s := wait(t, created)
	services, err := informers.FakeInformerFor(ctx, &corev1.Service{})
	w.Must(err)
	w.Must(w.API.Delete(ctx, s))
	services.Delete(s)
	again := wait(t, created)
	must.True(t, again.Spec.ClusterIP == s.Spec.ClusterIP && again.UID != s.UID, "was %s, is %s", s.Spec.ClusterIP, again.Spec.ClusterIP)
	cancel()
	w.Must(<-ended)
}

// informers may be asked for by several goroutines.
type informers struct {
	informertest.FakeInformers
	mu sync.Mutex
}

func (i *informers) GetInformer(ctx context.Context, o client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.FakeInformers.GetInformer(ctx, o, options...)
}

func wait[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(30 * time.Second):
		t.Fatal("nothing within 30 s")
		panic("unreachable")
	}
}

func TestClaimCacheKeepsReadFields(t *testing.T) {
	var options cache.Options
	Caches(&options)
	for o, by := range options.ByObject {
		if _, ok := o.(*corev1.PersistentVolumeClaim); !ok {
			t.Fatalf("%T", o)
		}
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta("data")}
		claim.UID, claim.Labels = "1", map[string]string{"team": "x"}
		claim.Annotations = map[string]string{ReplaceAnnotation: "10.96.0.1", "note": "x"}
		claim.Spec.VolumeName, claim.Status.Phase = "pv-1", corev1.ClaimBound
		slim, err := by.Transform(claim)
		got, ok := slim.(*corev1.PersistentVolumeClaim)
		if err != nil || !ok || got.UID != "1" || got.Spec.VolumeName != "pv-1" || got.Status.Phase != corev1.ClaimBound || len(got.Annotations) != 1 || got.Labels != nil {
			t.Errorf("got %+v, %v", slim, err)
		}
	}
}

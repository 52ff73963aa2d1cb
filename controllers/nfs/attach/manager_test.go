package attach

import (
	"context"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/fairlead-io/fairlead/controllers/nfs/pools"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/csi"
)

// informers may be asked for, and used, by several goroutines.
type informers struct {
	informertest.FakeInformers
	mu sync.Mutex
}

func (i *informers) GetInformer(ctx context.Context, o client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	fake, err := i.FakeInformerFor(ctx, o)
	return informer{fake, i}, err
}

type informer struct {
	*controllertest.FakeInformer
	of *informers
}

func (i informer) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	i.of.mu.Lock()
	defer i.of.mu.Unlock()
	return i.FakeInformer.AddEventHandler(handler)
}

func (i informer) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, o toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	i.of.mu.Lock()
	defer i.of.mu.Unlock()
	return i.FakeInformer.AddEventHandlerWithOptions(handler, o)
}

// add tells the handlers of an object.
func (i *informers) add(ctx context.Context, o client.Object) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	fake, err := i.FakeInformerFor(ctx, o)
	if err == nil {
		fake.Add(o)
	}
	return err
}

// The controllers start once the pools are complete, and the annotator hears of what the attacher does.
func TestAttachedNodeIsAnnotatedInAManager(t *testing.T) {
	w, l := attaching(t, serviceOf(1), 1)
	w.annotations[driver] = config.NodeAnnotationsWrite
	fakes := &informers{FakeInformers: informertest.FakeInformers{Scheme: w.API.Scheme()}}
	mgr, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, manager.Options{
		Scheme: w.API.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, Controller: ctrlconfig.Controller{SkipNameValidation: ptr.To(true)},
		NewCache:  func(*rest.Config, cache.Options) (cache.Cache, error) { return fakes, nil },
		NewClient: func(*rest.Config, client.Options) (client.Client, error) { return l.client, nil },
	})
	w.Must(err)
	observer := pools.NewObserver(l.pools, w.drivers, reader{Reader: w.API, Informers: fakes}, w.Log)
	l.r.Observer, l.annotator.Observer = observer, observer
	l.annotator.Client = w.API.Client() // one client may not be used by two controllers here
	w.Must(l.r.SetupWithManager(mgr))
	w.Must(l.annotator.SetupWithManager(mgr))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- mgr.Start(ctx) }()
	name := w.request("pv", "n0")
	asked := func(within time.Duration) string {
		for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			w.Must(fakes.add(ctx, w.attachment(name)))
			if address := w.getNode("n0").Annotations[csi.AddressKey(driver)]; address != "" {
				return address
			}
		}
		return ""
	}
	if address := asked(300 * time.Millisecond); address != "" {
		t.Errorf("node n0 got %s before the pools were complete", address)
	}
	w.Must(mgr.Add(observer))
	if address := asked(30 * time.Second); address != "10.0.0.1" {
		t.Errorf("node n0 is annotated with %q", address)
	}
	cancel()
	w.Must(<-ended)
}

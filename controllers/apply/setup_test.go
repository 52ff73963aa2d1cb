package apply

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// informers of a cache; those of controller-runtime's tests are for one goroutine.
type informers struct {
	informertest.FakeInformers
	mu       sync.Mutex
	networks networkInformer
}

func (i *informers) GetInformer(ctx context.Context, o client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	if o.GetObjectKind().GroupVersionKind() == reads.NetworkKind {
		return &i.networks, nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.FakeInformers.GetInformer(ctx, o, opts...)
}

// networkInformer reports when it is watched.
type networkInformer struct {
	controllertest.FakeInformer
	watched chan struct{}
}

func (i *networkInformer) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, o toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	defer close(i.watched)
	return i.FakeInformer.AddEventHandlerWithOptions(handler, o)
}

// A VolumeAttachment opens a gate before the status of Longhorn's volume changes.
func TestAttachmentWakesTheRollout(t *testing.T) {
	f := newFixture(t, multus.Attachment{})
	watched, wait := f.runInManager(t)
	watched.mu.Lock()
	informer, err := watched.FakeInformerFor(t.Context(), &storagev1.VolumeAttachment{})
	watched.mu.Unlock()
	f.Must(err)
	informer.Add(&storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: storagev1.VolumeAttachmentSpec{Attacher: names.Driver}})
	wait("a volume is attached")
}

// Networks are watched once one is used: the kind may not be installed before.
func TestDeletedNetworkWakesTheRollout(t *testing.T) {
	f := newFixture(t, netOne)
	watched, wait := f.runInManager(t)
	select {
	case <-watched.networks.watched:
	case <-time.After(20 * time.Second):
		t.Fatal("networks are not watched")
	}
	watched.networks.Update(networkObject(netOne), networkObject(netOne))
	watched.networks.Delete(networkObject(netOne))
	wait("a network is deleted")
}

// runInManager starts the controller in a manager, and returns after the first look.
func (f *fixture) runInManager(t *testing.T) (watched *informers, wait func(what string)) {
	f.Helper()
	woken := make(chan struct{}, 100)
	f.Client.Reading = func(runtime.Object) error {
		woken <- struct{}{}
		return nil
	}
	f.comeToRest()
	for len(woken) > 0 {
		<-woken
	}
	scheme := f.Scheme()
	watched = &informers{FakeInformers: informertest.FakeInformers{Scheme: scheme}, networks: networkInformer{watched: make(chan struct{})}}
	mgr, err := ctrl.NewManager(&rest.Config{}, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller:     ctrlconfig.Controller{SkipNameValidation: ptr.To(true)},
		NewCache:       func(*rest.Config, cache.Options) (cache.Cache, error) { return watched, nil },
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return meta.NewDefaultRESTMapper(nil), nil },
	})
	f.Must(err)
	f.Must(f.r.SetupWithManager(mgr))
	t.Cleanup(func() {
		for _, c := range f.r.metrics.collectors() {
			ctrlmetrics.Registry.Unregister(c)
		}
	})
	ctx, stop := context.WithCancel(f.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() { stop(); f.Must(<-ended) })
	wait = func(what string) {
		f.Helper()
		select {
		case <-woken:
		case <-time.After(20 * time.Second):
			f.Fatalf("%s: nothing is reconciled", what)
		}
	}
	wait("at the start")
	return watched, wait
}

func TestOnlyReboundVolumesWakeTheRollout(t *testing.T) {
	free, bound := &corev1.PersistentVolume{}, &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Name: "data"}}}
	otherClass := bound.DeepCopy()
	otherClass.Spec.StorageClassName = "other"
	for after, want := range map[*corev1.PersistentVolume]bool{bound.DeepCopy(): false, free: true, otherClass: true} {
		must.Check(t, isRebound(bound, after) == want && isRebound(after, bound) == want, "%+v: want %t", after.Spec, want)
	}
	if !rwx.AsksForNetwork(map[string]string{rwx.VolumeNetworkAnnotation: "team-x/nfs"}) || rwx.AsksForNetwork(nil) {
		t.Error("only the annotation of a network asks for one")
	}
}

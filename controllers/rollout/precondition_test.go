package rollout

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
	"github.com/fairlead-io/fairlead/internal/testkit"
)

// choose has the settings choose a network.
func (f *fixture) choose(network storage.Attachment) {
	f.Helper()
	var setting v1alpha1.Setting
	f.Must(f.API.Get(f.Context(), client.ObjectKey{Namespace: profile.Namespace, Name: string(catalog.EndpointNetworkForRWX)}, &setting))
	*setting.Value = network.Network.String()
	f.Must(f.API.Update(f.Context(), &setting))
	f.Must(client.IgnoreAlreadyExists(f.API.Create(f.Context(), networkObject(network))))
}

// networkObject is the NetworkAttachmentDefinition.
func networkObject(network storage.Attachment) client.Object {
	var o metav1.PartialObjectMetadata
	o.SetGroupVersionKind(cluster.NetworkKind)
	o.SetNamespace(network.Namespace)
	o.SetName(network.Name)
	return &o
}

// The live look sees a client pod; by the time of its deletion another has its name.
func TestReplacedClientIsNotRestarted(t *testing.T) {
	f := newFixture(t, storage.Attachment{})
	f.choose(netOne)
	var ds appsv1.DaemonSet
	f.Must(f.API.Get(t.Context(), cluster.DaemonSetKey(profile), &ds))
	ds.Annotations[appsv1.DeprecatedTemplateGeneration] = "2" // the client is of an older template
	f.Must(f.API.Update(t.Context(), &ds))
	replaced := false
	f.fail = func(verb string, o client.Object) error {
		pod, ok := o.(*corev1.Pod)
		if verb != "delete" || !ok || replaced {
			return nil
		}
		replaced = true
		var there corev1.Pod
		f.Must(f.API.Get(f.Context(), client.ObjectKeyFromObject(pod), &there))
		f.Must(f.API.Delete(f.Context(), there.DeepCopy()))
		there.ResourceVersion, there.UID = "", ""
		f.Must(f.API.Create(f.Context(), &there))
		return nil
	}
	for range 20 {
		if replaced {
			break
		}
		f.Must(f.reconcile())
		testkit.Change(f.Bench, profile.Namespace, profile.ClientDaemonSet, func(ds *appsv1.DaemonSet) { ds.Status.ObservedGeneration = ds.Generation })
	}
	var pod corev1.Pod
	if !replaced {
		t.Fatalf("no client was restarted: %s", f.rollout().Status.Message)
	}
	if err := f.API.Get(t.Context(), client.ObjectKey{Namespace: profile.Namespace, Name: "csi"}, &pod); err != nil {
		t.Fatalf("the replacement is gone: %v", err)
	}
}

// What disturbs is decided on live facts: a cache may not show yet what is attached.
func TestStaleCacheOpensNoGate(t *testing.T) {
	attached := &longhorn.Volume{ObjectMeta: metav1.ObjectMeta{Namespace: profile.Namespace, Name: "v"}, Spec: longhorn.VolumeSpec{AccessMode: "rwx"}}
	attached.Status.State, attached.Status.CurrentNodeID = "attached", "node-1"
	f := newFixture(t, storage.Attachment{}, attached)
	f.choose(netOne)
	f.hidden = func(list client.ObjectList) bool { _, ok := list.(*longhorn.VolumeList); return ok }
	for range 5 {
		f.Must(f.reconcile())
	}
	if got := f.rollout().Status.Clients.Network; got != "" {
		t.Fatalf("clients move to %s while a volume is attached", got)
	}
	f.Must(f.API.Delete(t.Context(), attached))
	f.Must(f.reconcile())
	if got := f.rollout().Status.Clients.Network; got != netOne.String() {
		t.Fatalf("the gate is open, and clients stay on %q: %s", got, f.rollout().Status.Message)
	}
}

// With servers on the cluster network at first, Longhorn's setting would be written as not applied.
func TestRecordBeginsWithServersOnTheClientsNetwork(t *testing.T) {
	f := newFixture(t, netOne)
	f.Must(f.API.Delete(t.Context(), f.rollout()))
	for range 3 { // the object, the record, the report
		f.Must(f.reconcile())
		if s := f.rollout().Status; s.Recorded && s.Servers.Network != netOne.String() {
			t.Fatalf("servers begin on %q", s.Servers.Network)
		}
	}
	if got := f.rollout().Status.Phase; got != string(rollout.PhaseApplied) {
		t.Fatalf("phase %s", got)
	}
}

func TestChangedRecordIsNotOverwritten(t *testing.T) {
	networks := []storage.Attachment{storage.VolumeAttachment(netTwo.Network)}
	for name, decidedOn := range map[string]rollout.Record{
		"clients":        {Clients: netTwo, Servers: netOne},
		"servers":        {Clients: netOne, Servers: netTwo},
		"volume clients": {Clients: netOne, Servers: netOne, VolumeClients: networks},
		"volume servers": {Clients: netOne, Servers: netOne, VolumeServers: networks},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, netOne)
			err := f.r.recordStep(t.Context(), rollout.Rollout{Record: decidedOn}, rollout.Step{Action: rollout.RecordServers})
			if !apierrors.IsConflict(err) || f.writes() != 0 {
				t.Fatalf("got %v, %d writes", err, f.writes())
			}
		})
	}
	f := newFixture(t, netOne)
	if err := f.r.recordStep(t.Context(), rollout.Rollout{Record: rollout.Record{Clients: netOne, Servers: netOne}}, rollout.Step{Action: rollout.RecordServers}); err != nil || f.writes() != 1 {
		t.Fatalf("the record that was decided on: got %v, %d writes", err, f.writes())
	}
}

// An installer may write the DaemonSet between the look and the patch.
func TestChangedDaemonSetIsNotPatched(t *testing.T) {
	f := newFixture(t, storage.Attachment{})
	f.Must(f.r.patchDaemonSet(t.Context(), func(ds *appsv1.DaemonSet) error { ds.Labels = map[string]string{"a": "b"}; return nil }))
	if got := f.patches["*v1.DaemonSet"]; !strings.Contains(got, `"resourceVersion"`) {
		t.Fatalf("the patch has no precondition: %s", got)
	}
}

// informers of a cache; those of controller-runtime's tests are for one goroutine.
type informers struct {
	informertest.FakeInformers
	mu       sync.Mutex
	networks networkInformer
}

func (i *informers) GetInformer(ctx context.Context, o client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	if o.GetObjectKind().GroupVersionKind() == cluster.NetworkKind {
		return &i.networks, nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.FakeInformers.GetInformer(ctx, o, opts...)
}

// networkInformer says when it is watched.
type networkInformer struct {
	controllertest.FakeInformer
	watched chan struct{}
}

func (i *networkInformer) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, o toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	defer close(i.watched)
	return i.FakeInformer.AddEventHandlerWithOptions(handler, o)
}

// A volume that Kubernetes detaches opens a gate, before Longhorn's own volume says so.
func TestAttachmentWakesTheRollout(t *testing.T) {
	f := newFixture(t, storage.Attachment{})
	watched, wait := f.runInManager(t)
	watched.mu.Lock()
	informer, err := watched.FakeInformerFor(t.Context(), &storagev1.VolumeAttachment{})
	watched.mu.Unlock()
	f.Must(err)
	informer.Add(&storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: storagev1.VolumeAttachmentSpec{Attacher: profile.Driver}})
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

// runInManager begins to reconcile events, and returns after the first time.
func (f *fixture) runInManager(t *testing.T) (watched *informers, wait func(what string)) {
	f.Helper()
	woken := make(chan struct{}, 100)
	f.r.Client = interceptor.NewClient(f.r.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			woken <- struct{}{}
			return c.Get(ctx, key, o, opts...)
		},
	})
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

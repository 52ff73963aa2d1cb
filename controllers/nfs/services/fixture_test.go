package services

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/nfs/frontend"
	"github.com/fairlead-io/fairlead/controllers/nfs/pools"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
	"github.com/fairlead-io/fairlead/internal/nfs/health"
	"github.com/fairlead-io/fairlead/internal/nfs/rpc"
	"github.com/fairlead-io/fairlead/internal/nfs/spec"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
)

var (
	noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	key  = types.NamespacedName{Namespace: "storage", Name: "pool"}
)

// fixture is the controller over a fake API.
type fixture struct {
	*testing.T
	*fakeapi.API
	client *fakeapi.Client
	r      *Reconciler
	clock  *clocktesting.FakeClock
	notes  []string
	asked  []time.Duration
	slices map[string][]discoveryv1.EndpointSlice // by Service; absent: not read yet
	used   string
}

func newFixture(t *testing.T, spec v1alpha1.NFSServiceSpec) *fixture {
	t.Helper()
	scheme, err := cluster.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{
		T: t, API: fakeapi.New(scheme, nil, &v1alpha1.NFSService{}), clock: clocktesting.NewFakeClock(noon), slices: map[string][]discoveryv1.EndpointSlice{},
	}
	f.must(f.Create(t.Context(), &v1alpha1.NFSService{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Generation: 1}, Spec: spec}))
	f.restart()
	return f
}

// restart is a new leader, which remembers nothing but what the API has.
func (f *fixture) restart() {
	f.Helper()
	var hooks fakeapi.Client
	if f.client != nil {
		hooks = *f.client
	}
	f.client = f.API.Client()
	f.client.Before, f.client.After = hooks.Before, hooks.After
	log := slog.New(slog.DiscardHandler)
	f.r = &Reconciler{
		Client: f.client, Live: f.API, Writer: &frontend.Writer{Client: f.client, Live: f.API, Classic: true, Log: log}, Pools: pools.New(),
		Drivers: pools.Drivers{csi.DefaultDriver: {}}, Probing: &Probing{Clock: f.clock}, Servers: (*servers)(f), Events: recorder{f}, Clock: f.clock, Log: log,
		parallel: 1, // so that runs repeat
	}
	f.must(f.r.prepare(prometheus.NewRegistry()))
	f.r.trigger = func(_ types.NamespacedName, after time.Duration) { f.asked = append(f.asked, after) }
}

type servers fixture

func (s *servers) Use(_ types.NamespacedName, server string) { s.used = server }

func (s *servers) Slices(types.NamespacedName) ([]discoveryv1.EndpointSlice, bool) {
	list, ok := s.slices[s.used]
	return list, ok
}

type recorder struct{ *fixture }

func (r recorder) Eventf(_, _ runtime.Object, kind, reason, _, note string, args ...any) {
	r.notes = append(r.notes, kind+" "+reason+": "+fmt.Sprintf(note, args...))
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// reconcile runs passes until none is asked for at once.
func (f *fixture) reconcile() time.Duration {
	f.Helper()
	for range 20 {
		result, err := f.r.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
		f.must(err)
		if result.RequeueAfter != settle {
			return result.RequeueAfter
		}
	}
	f.Fatal("the passes do not end")
	return 0
}

// probe reports one probe of each backend, at once; the message of a failed one is its error.
func (f *fixture) probe(results map[string]string) {
	f.Helper()
	f.clock.Step(time.Second)
	for backend, message := range results {
		reason := rpc.Serving
		if message != "" {
			reason = rpc.Silent
		}
		f.r.observe(key, netip.MustParseAddrPort(backend+":2049"), rpc.Result{Reason: reason, Message: message, Started: f.clock.Now()})
	}
	f.clock.Step(gather)
}

// healthy reports that backends answer, and reconciles.
func (f *fixture) healthy(backends ...string) {
	f.Helper()
	f.reconcile()
	for range 2 {
		results := map[string]string{}
		for _, b := range backends {
			results[b] = ""
		}
		f.probe(results)
	}
	f.reconcile()
}

// kill lets backends fail as often as takes them out, and reconciles.
func (f *fixture) kill(backends ...string) {
	f.Helper()
	for range 3 {
		results := map[string]string{}
		for _, b := range backends {
			results[b] = "does not answer"
		}
		f.probe(results)
	}
	f.reconcile()
}

func (f *fixture) get() *v1alpha1.NFSService {
	f.Helper()
	var s v1alpha1.NFSService
	f.must(f.Get(context.Background(), key, &s))
	return &s
}

func (f *fixture) change(how func(*v1alpha1.NFSService)) {
	f.Helper()
	s := f.get()
	how(s)
	s.Generation++
	f.must(f.Update(context.Background(), s))
}

func (f *fixture) condition(kind string) metav1.Condition {
	f.Helper()
	c := meta.FindStatusCondition(f.get().Status.Conditions, kind)
	if c == nil {
		f.Fatalf("there is no condition %s", kind)
	}
	return *c
}

func (f *fixture) backend(address string) v1alpha1.NFSBackendStatus {
	f.Helper()
	list := f.get().Status.Backends
	i := slices.IndexFunc(list, func(b v1alpha1.NFSBackendStatus) bool { return b.Address == address+":2049" })
	if i < 0 {
		f.Fatalf("there is no backend %s", address)
	}
	return list[i]
}

// published are the addresses that the slices of a Service name.
func (f *fixture) published(service string) []string {
	f.Helper()
	var list discoveryv1.EndpointSliceList
	f.must(f.List(context.Background(), &list, client.MatchingLabels{discoveryv1.LabelServiceName: service}))
	var all []string
	for _, s := range list.Items {
		for _, e := range s.Endpoints {
			all = append(all, e.Addresses...)
		}
	}
	return all
}

func (f *fixture) kubeService(name string) *corev1.Service {
	f.Helper()
	var s corev1.Service
	f.must(f.Get(context.Background(), client.ObjectKey{Namespace: key.Namespace, Name: name}, &s))
	return &s
}

// attach assigns a node, and writes its VolumeAttachment.
func (f *fixture) attach(node, volume string) string {
	f.Helper()
	name := node + "-" + volume
	address, err := f.r.Pools.Attach(key, assign.Node{Name: node}, name)
	f.must(err)
	va := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Annotations: map[string]string{pools.ServiceAnnotation: key.String()}, Finalizers: []string{pools.Finalizer(csi.DefaultDriver)}},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: csi.DefaultDriver, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To(volume)}},
	}
	f.must(f.Create(context.Background(), va))
	va.Status = storagev1.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: map[string]string{csi.AddressKey(csi.DefaultDriver): address}}
	f.must(f.Status().Update(context.Background(), va))
	return address
}

func (f *fixture) noted(parts ...string) bool {
	return slices.ContainsFunc(f.notes, func(n string) bool {
		return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(n, p) })
	})
}

// spec has backends by address.
func specOf(exposure string, addresses ...string) v1alpha1.NFSServiceSpec {
	s := v1alpha1.NFSServiceSpec{Exposure: exposure, Port: 2049}
	for _, a := range addresses {
		s.Backends = append(s.Backends, v1alpha1.NFSBackend{Address: a})
	}
	return s
}

var errCrash = errors.New("the controller has died")

func requestOf() ctrl.Request { return ctrl.Request{NamespacedName: key} }

func readSettings(t *testing.T, in v1alpha1.NFSServiceSpec) health.Settings {
	t.Helper()
	in.Backends = []v1alpha1.NFSBackend{{Address: "10.0.0.1"}}
	parsed, problems := spec.Read(&v1alpha1.NFSService{ObjectMeta: metav1.ObjectMeta{Name: "pool"}, Spec: in})
	if len(problems) > 0 {
		t.Fatal(problems.Err())
	}
	return parsed.Health
}

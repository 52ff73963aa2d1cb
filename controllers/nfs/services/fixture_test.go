package services

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/nfs/frontend"
	"github.com/fairlead-io/fairlead/controllers/nfs/pools"
	"github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
	"github.com/fairlead-io/fairlead/internal/nfs/definition"
	"github.com/fairlead-io/fairlead/internal/nfs/health"
	"github.com/fairlead-io/fairlead/internal/nfs/rpc"
	nfsvolume "github.com/fairlead-io/fairlead/internal/nfs/volume"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/reads/nfsreads"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

var key = types.NamespacedName{Namespace: "storage", Name: "pool"}

type fixture struct {
	*testkit.Bench
	r      *Reconciler
	asked  []time.Duration
	slices map[string][]discoveryv1.EndpointSlice // by Service; absent: not read yet
}

func newFixture(t *testing.T, spec v1alpha1.NFSServiceSpec) *fixture {
	t.Helper()
	api := fakeapi.New(testkit.Value[*runtime.Scheme](t)(reads.NewScheme()), nil, &v1alpha1.NFSService{})
	service := &v1alpha1.NFSService{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Generation: 1}, Spec: spec}
	f := &fixture{Bench: testkit.NewBench(t, api, service), slices: map[string][]discoveryv1.EndpointSlice{}}
	f.restart()
	return f
}

// running is a service whose servers 10.0.0.1 and on answer.
func running(t *testing.T, exposure string, servers int) *fixture {
	t.Helper()
	list := addresses(servers)
	f := newFixture(t, specOf(exposure, list...))
	f.healthy(list...)
	return f
}

func addresses(n int) []string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("10.0.0.%d", i+1))
	}
	return list
}

// restart is a new leader, which knows only what the API has.
func (f *fixture) restart() {
	f.Helper()
	before, after := f.Client.Before, f.Client.After
	f.NewLeader()
	f.Client.Before, f.Client.After = before, after
	f.r = &Reconciler{
		Client: f.Client, Live: f.API, Writer: &frontend.Writer{Client: f.Client, Live: f.API, Log: f.Log}, Pools: pools.New(),
		Drivers: nfsreads.Drivers{csi.DefaultDriver: {}}, Servers: (*servers)(f), Events: f.Events, Clock: f.Clock, Log: f.Log,
		parallel: 1, // so that runs repeat
	}
	f.Must(f.r.prepare(f.Registry))
	f.r.trigger = func(_ types.NamespacedName, after time.Duration) { f.asked = append(f.asked, after) }
}

type servers fixture

func (s *servers) Slices(_ types.NamespacedName, server string) ([]discoveryv1.EndpointSlice, bool) {
	list, ok := s.slices[server]
	return list, ok || server == ""
}

// reconcile runs passes until none is asked for at once.
func (f *fixture) reconcile() time.Duration {
	f.Helper()
	for range 20 {
		result, err := f.r.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
		f.Must(err)
		if result.RequeueAfter != settle {
			return result.RequeueAfter
		}
	}
	f.Fatalf("the passes do not end")
	return 0
}

// probe reports one probe of each backend, at once; the message of a failed one is its error.
func (f *fixture) probe(results map[string]string) {
	f.Helper()
	f.Clock.Step(time.Second)
	for backend, message := range results {
		verdict := rpc.Healthy
		if message != "" {
			verdict = rpc.Unhealthy
		}
		f.r.observe(key, netip.MustParseAddrPort(backend+":2049"), rpc.Result{Verdict: verdict, Message: message, Started: f.Clock.Now()})
	}
	f.Clock.Step(gather)
}

// probes reports the same result of backends several times, and reconciles.
func (f *fixture) probes(times int, message string, backends []string) {
	f.Helper()
	results := map[string]string{}
	for _, b := range backends {
		results[b] = message
	}
	for range times {
		f.probe(results)
	}
	f.reconcile()
}

// healthy reports that backends answer, and reconciles.
func (f *fixture) healthy(backends ...string) {
	f.Helper()
	f.reconcile()
	f.probes(2, "", backends)
}

// kill lets backends fail as often as takes them out, and reconciles.
func (f *fixture) kill(backends ...string) { f.Helper(); f.probes(3, "does not answer", backends) }

func (f *fixture) get() *v1alpha1.NFSService {
	f.Helper()
	return testkit.Get[v1alpha1.NFSService](f, f.API, key.Namespace, key.Name)
}

func (f *fixture) change(how func(*v1alpha1.NFSService)) {
	f.Helper()
	s := f.get()
	how(s)
	s.Generation++
	f.Must(f.Update(context.Background(), s))
}

func (f *fixture) condition(kind string) metav1.Condition {
	f.Helper()
	if c := meta.FindStatusCondition(f.get().Status.Conditions, kind); c != nil {
		return *c
	}
	f.Fatalf("there is no condition %s", kind)
	return metav1.Condition{}
}

func (f *fixture) backend(address string) v1alpha1.NFSBackendStatus {
	f.Helper()
	list := f.get().Status.Backends
	i := slices.IndexFunc(list, func(b v1alpha1.NFSBackendStatus) bool { return b.Address == address+":2049" })
	must.True(f, i >= 0, "there is no backend %s", address)
	return list[i]
}

func (f *fixture) published(service string) []string {
	f.Helper()
	list := testkit.Published(f, f.API, key.Namespace, service)
	for i := range list {
		list[i] = strings.TrimSuffix(list[i], ":2049")
	}
	return list
}

func (f *fixture) kubeService(name string) *corev1.Service {
	f.Helper()
	return testkit.Get[corev1.Service](f, f.API, key.Namespace, name)
}

// attach assigns a node, and writes its VolumeAttachment.
func (f *fixture) attach(node, volume string) string {
	f.Helper()
	name := node + "-" + volume
	address, err := f.r.Pools.Attach(key, assign.Node{Name: node}, name)
	f.Must(err)
	va := objects.Attachment(volume, node, csi.DefaultDriver)
	va.Name, va.UID, va.Finalizers = name, types.UID(name), []string{nfsreads.Finalizer(csi.DefaultDriver)}
	va.Annotations = map[string]string{nfsvolume.AttachedServiceAnnotation: key.String()}
	va.Status = storagev1.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: map[string]string{csi.AddressKey(csi.DefaultDriver): address}}
	f.Must(f.Seed(context.Background(), va))
	return address
}

func (f *fixture) noted(parts ...string) bool { return len(f.Events.About(parts...)) > 0 }

func specOf(exposure string, addresses ...string) v1alpha1.NFSServiceSpec {
	s := v1alpha1.NFSServiceSpec{Exposure: exposure, Port: 2049}
	for _, a := range addresses {
		s.Backends = append(s.Backends, v1alpha1.NFSBackend{Address: a})
	}
	return s
}

func requestOf() ctrl.Request { return ctrl.Request{NamespacedName: key} }

func readSettings(t *testing.T, in v1alpha1.NFSServiceSpec) health.Settings {
	t.Helper()
	in.Backends = []v1alpha1.NFSBackend{{Address: "10.0.0.1"}}
	parsed, problems := definition.Read(&v1alpha1.NFSService{ObjectMeta: metav1.ObjectMeta{Name: "pool"}, Spec: in})
	must.Do(t, problems.Err())
	return parsed.Health
}

//lint:file-ignore SA1019 the readers of the deprecated API are served too

package ondat

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fairlead-io/fairlead/controllers/nfs/frontend"
	bed "github.com/fairlead-io/fairlead/e2e/ondat"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat/rest"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
)

var newScheme = sync.OnceValues(cluster.NewScheme)

// world is the controller between the test bed's control plane and a fake API server.
type world struct {
	testing.TB
	*bed.Server
	kube     *fakeapi.API
	client   *fakeapi.Client
	clock    *clocktesting.FakeClock
	r        *Reconciler
	registry *prometheus.Registry
	notes    []string
	mu       sync.Mutex
	endpoint string
	secret   string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{TB: t, Server: bed.New(), kube: fakeapi.New(scheme, nil), clock: clocktesting.NewFakeClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))}
	server := w.Server.Start()
	t.Cleanup(server.Close)
	w.endpoint, w.secret = server.URL, t.TempDir()
	for name, value := range map[string]string{"username": w.Username, "password": w.Password} {
		w.must(os.WriteFile(filepath.Join(w.secret, name), []byte(value), 0o600))
	}
	w.restart()
	return w
}

// restart is a new leader, which remembers nothing.
func (w *world) restart() {
	w.Helper()
	w.registry = prometheus.NewRegistry()
	api, err := rest.New(rest.Options{Endpoint: w.endpoint, SecretPath: w.secret, Registry: w.registry})
	w.must(err)
	w.client = w.kube.Client()
	log := slog.New(slog.DiscardHandler)
	w.r = &Reconciler{
		Options: Options{Interval: 5 * time.Second, Expiry: time.Minute, Retry: 5 * time.Second, CreatePoll: time.Second, CreateWait: 20 * time.Second, Naming: ondat.ByPVC, Concurrency: 16},
		API:     api, Client: w.client, Live: w.kube, Writer: &frontend.Writer{Client: w.client, Live: w.kube, Classic: true, Log: log},
		Events: recorder{w}, Clock: w.clock, Log: log,
	}
	w.must(w.r.prepare(w.registry))
}

type recorder struct{ *world }

func (r recorder) Eventf(about, _ runtime.Object, kind, reason, _, note string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := "?"
	if o, ok := about.(client.Object); ok {
		name = fmt.Sprintf("%T %s/%s", o, o.GetNamespace(), o.GetName())
	}
	r.notes = append(r.notes, kind+" "+reason+": "+fmt.Sprintf(note, args...)+" ("+name+")")
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// claim creates a PVC that is bound to a PV.
func (w *world) claim(namespace, name, pv string) *corev1.PersistentVolumeClaim {
	w.Helper()
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	c.Spec.VolumeName, c.Status.Phase = pv, corev1.ClaimBound
	w.must(w.kube.Create(context.Background(), c))
	return c
}

// share makes volume v-1 of PVC apps/data, attached as shared at server.
func (w *world) share(server string) {
	w.Helper()
	w.claim("apps", "data", "pv-1")
	w.Provision("default-id", "v-1", "pv-1", "data", "apps")
	w.Attach("v-1", server)
}

// poll asks the control plane and reconciles what has news. It returns those volumes.
func (w *world) poll() []string {
	w.Helper()
	ids, err := w.r.poll(context.Background())
	w.must(err)
	slices.Sort(ids)
	for _, id := range ids {
		w.reconcile(id)
	}
	return ids
}

func (w *world) reconcile(id string) time.Duration {
	w.Helper()
	result, err := w.r.Reconcile(context.Background(), reconcile.Request{NamespacedName: types.NamespacedName{Name: id}})
	w.must(err)
	return result.RequeueAfter
}

// get reads an object of namespace apps, or returns nil where there is none.
func get[T any, P interface {
	*T
	client.Object
}](w *world, name string) P {
	w.Helper()
	o := P(new(T))
	err := w.kube.Get(context.Background(), keyOf("apps", name), o)
	if client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return o
}

func (w *world) service(name string) *corev1.Service { w.Helper(); return get[corev1.Service](w, name) }

// led are the addresses that the slices of a Service name.
func (w *world) led(name string) []string {
	w.Helper()
	var list discoveryv1.EndpointSliceList
	w.must(w.kube.List(context.Background(), &list, client.InNamespace("apps"), client.MatchingLabels{discoveryv1.LabelServiceName: name}))
	var all []string
	for _, s := range list.Items {
		for _, e := range s.Endpoints {
			for _, p := range s.Ports {
				all = append(all, fmt.Sprintf("%s %d", e.Addresses[0], *p.Port))
			}
		}
	}
	return all
}

// leads fails unless the slices of a Service name just this, or nothing.
func (w *world) leads(name, want string) {
	w.Helper()
	got := w.led(name)
	if want == "" && len(got) == 0 || len(got) == 1 && got[0] == want {
		return
	}
	w.Errorf("Service %s leads to %q, want %q", name, got, want)
}

// mounted is the mount endpoint of volume v-1.
func (w *world) mounted() string {
	v, _ := w.Server.Volume("v-1")
	return v.MountEndpoint()
}

// said are the events since the last call.
func (w *world) said() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	notes := w.notes
	w.notes = nil
	return notes
}

// collect does what the garbage collector does: what is owned by an object that is
// gone goes.
func (w *world) collect(gone types.UID) {
	w.Helper()
	for _, list := range []client.ObjectList{&corev1.ServiceList{}, &discoveryv1.EndpointSliceList{}, &corev1.EndpointsList{}} {
		w.must(w.kube.List(context.Background(), list))
		for _, o := range objects(list) {
			if slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == gone }) {
				uid := o.GetUID()
				w.must(w.kube.Delete(context.Background(), o))
				w.collect(uid)
			}
		}
	}
}

func objects(list client.ObjectList) []client.Object {
	var all []client.Object
	switch l := list.(type) {
	case *corev1.ServiceList:
		for i := range l.Items {
			all = append(all, &l.Items[i])
		}
	case *discoveryv1.EndpointSliceList:
		for i := range l.Items {
			all = append(all, &l.Items[i])
		}
	case *corev1.EndpointsList:
		for i := range l.Items {
			all = append(all, &l.Items[i])
		}
	}
	return all
}

// writes counts what the controller writes to Kubernetes.
func (w *world) writes(do func()) []string {
	var list []string
	w.client.Before = func(write fakeapi.Write) error {
		list = append(list, fmt.Sprintf("%s %T", write.Verb, write.Object))
		return nil
	}
	do()
	w.client.Before = nil
	return list
}

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "apps", Name: name} }

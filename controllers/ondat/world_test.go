package ondat

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fairlead-io/fairlead/controllers/nfs/frontend"
	bed "github.com/fairlead-io/fairlead/e2e/ondat"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat/rest"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
)

var newScheme = sync.OnceValues(cluster.NewScheme)

// world is the controller between the test bed's control plane and a fake API server.
type world struct {
	*bed.Server
	*testkit.Bench
	r        *Reconciler
	endpoint string
	secret   string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{Server: bed.New(), Bench: testkit.NewBench(t, fakeapi.New(testkit.Value[*runtime.Scheme](t)(newScheme()), nil)), secret: t.TempDir()}
	server := w.Server.Start()
	t.Cleanup(server.Close)
	w.endpoint = server.URL
	for name, value := range map[string]string{"username": w.Username, "password": w.Password} {
		w.Must(os.WriteFile(filepath.Join(w.secret, name), []byte(value), 0o600))
	}
	w.restart()
	return w
}

// publishedWorld has volume v-1 shared and published.
func publishedWorld(t testing.TB) *world {
	t.Helper()
	w := newWorld(t)
	w.share("10.0.0.1:32001")
	w.poll()
	return w
}

// restart is a new leader, which knows only what the APIs have.
func (w *world) restart() {
	w.Helper()
	w.NewLeader()
	api := testkit.Value[*rest.Client](w)(rest.New(rest.Options{Endpoint: w.endpoint, SecretPath: w.secret, Registry: w.Registry}))
	w.r = newReconciler(api, w.Client, w.API)
	w.r.Events, w.r.Clock = w.Events, w.Clock
	w.Must(w.r.prepare(w.Registry))
}

func newReconciler(api API, c client.Client, live client.Reader) *Reconciler {
	log := slog.New(slog.DiscardHandler)
	return &Reconciler{
		Options: Options{Interval: 5 * time.Second, Expiry: time.Minute, Retry: 5 * time.Second, CreatePoll: time.Second, CreateWait: 20 * time.Second, Naming: ondat.ByPVC, Concurrency: 16},
		API:     api, Client: c, Live: live, Writer: &frontend.Writer{Client: c, Live: live, Classic: true, Log: log}, Log: log,
	}
}

// claim creates a PVC that is bound to a PV.
func (w *world) claim(namespace, name, pv string) *corev1.PersistentVolumeClaim {
	w.Helper()
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	c.Spec.VolumeName, c.Status.Phase = pv, corev1.ClaimBound
	w.Must(w.API.Create(context.Background(), c))
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
	w.Must(err)
	slices.Sort(ids)
	for _, id := range ids {
		w.reconcile(id)
	}
	return ids
}

func (w *world) reconcile(id string) time.Duration {
	w.Helper()
	return testkit.Value[reconcile.Result](w)(w.r.Reconcile(context.Background(), request(id))).RequeueAfter
}

// get reads an object of namespace apps, or returns nil where there is none.
func get[T any, P interface {
	*T
	client.Object
}](w *world, name string) P {
	w.Helper()
	return testkit.Get[T, P](w, w.API, "apps", name)
}

func (w *world) service(name string) *corev1.Service { w.Helper(); return get[corev1.Service](w, name) }

// led are the addresses that the slices of a Service name.
func (w *world) led(name string) []string {
	w.Helper()
	return testkit.Published(w, w.API, "apps", name)
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
	defer w.Events.Clear()
	return w.Events.Notes()
}

// collect deletes what an object that is gone owned.
func (w *world) collect(gone types.UID) { w.Helper(); testkit.Collect(w, w.API, gone) }

// writes are the controller's writes to Kubernetes.
func (w *world) writes(do func()) []string {
	before := len(w.Client.Writes)
	do()
	return w.Client.Wrote()[before:]
}

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "apps", Name: name} }

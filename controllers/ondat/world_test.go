package ondat

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/controllers/nfs/frontend"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat/rest"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	bed "github.com/fairlead-io/fairlead/internal/testkit/ondat"
)

var newScheme = sync.OnceValues(reads.NewScheme)

// world is the controller between the test bed's control plane and a fake API server.
type world struct {
	*bed.Server
	*testkit.Bench
	T        testing.TB
	r        *Reconciler
	endpoint string
	secret   string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{T: t, Server: bed.New(), Bench: testkit.NewBench(t, fakeapi.New(testkit.Value[*runtime.Scheme](t)(newScheme()), nil)), secret: t.TempDir()}
	server := w.Server.Start()
	t.Cleanup(server.Close)
	w.endpoint = server.URL
	for name, value := range map[string]string{"username": w.Username, "password": w.Password} {
		w.Must(os.WriteFile(filepath.Join(w.secret, name), []byte(value), 0o600))
	}
	w.restart()
	return w
}

// sharedWorld has volume v-1 shared.
func sharedWorld(t testing.TB) *world {
	t.Helper()
	w := newWorld(t)
	w.share("10.0.0.1:32001")
	return w
}

// publishedWorld has volume v-1 shared and published.
func publishedWorld(t testing.TB) *world {
	t.Helper()
	w := sharedWorld(t)
	w.poll()
	w.reports("Normal Published: Ondat volume pv-1 is mounted at " + w.mounted())
	return w
}

// restart is a new leader, which knows only what the APIs have.
func (w *world) restart() {
	w.Helper()
	w.NewLeader()
	w.Client.Unbound = []string{"delete Endpoints"} // Fairlead may not read them, and all of the volume's are the released manager's
	w.r = &Reconciler{
		Config: config.Ondat{APIPollInterval: metav1.Duration{Duration: 5 * time.Second}, ServiceName: ondat.ByPVC},
		API:    testkit.Value[*rest.Client](w)(rest.New(w.endpoint, "", w.secret, w.Registry)),
		Client: w.Client, Live: w.API, Writer: &frontend.Writer{Client: w.Client, Live: w.API, Log: w.Log},
		Events: w.Events, Clock: w.Clock, Log: w.Log, metrics: newMetrics(w.Registry),
		parallel: 1, // the client counts writes for one goroutine
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

// poll runs a round.
func (w *world) poll() { w.Helper(); w.Must(w.r.round(context.Background())) }

// fails fails unless volume v-1 is pending, for a reason that contains a text.
func (w *world) fails(why string) {
	w.Helper()
	o := w.r.outcomes["v-1"]
	must.True(w, o.phase == pending && strings.Contains(o.Message, why), "got %+v, want %q", o, why)
}

// get reads an object of namespace apps, or returns nil where there is none.
func get[T any, P interface {
	*T
	client.Object
}](w *world, name string) P {
	w.Helper()
	return testkit.Get[T, P](w, w.API, "apps", name)
}

func (w *world) pvc() *corev1.PersistentVolumeClaim {
	w.Helper()
	return get[corev1.PersistentVolumeClaim](w, "data")
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
	must.True(w, strings.Join(got, " ") == want, "Service %s leads to %q, want %q", name, got, want)
}

// mounted is the mount endpoint of volume v-1.
func (w *world) mounted() string {
	v, _ := w.Server.Volume("v-1")
	return v.MountEndpoint()
}

func (w *world) mountedAt(want string) {
	w.Helper()
	must.Equal(w.T, w.mounted(), want, "mount endpoint")
}

// label sets the mount endpoint of volume v-1, as another writer does.
func (w *world) label(endpoint string) {
	w.Change("v-1", func(v *bed.Volume) { v.Labels["storageos.com/nfs/mount-endpoint"] = endpoint })
}

// reports fails unless the events since the last call contain these texts, one each.
func (w *world) reports(want ...string) {
	w.Helper()
	got := w.Events.Notes()
	w.Events.Clear()
	must.True(w, slices.EqualFunc(got, want, strings.Contains), "reported %q, want %q", got, want)
}

// remove deletes an object and what it owned.
func (w *world) remove(o client.Object) {
	w.Helper()
	w.Must(w.API.Delete(context.Background(), o))
	w.collect(o.GetUID())
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

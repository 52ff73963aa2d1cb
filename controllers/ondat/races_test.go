package ondat

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	bed "github.com/fairlead-io/fairlead/e2e/ondat"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// Changes while the controller works.

// wrongService is this volume's Service with another address than the published one.
func wrongService(t *testing.T, finalizers ...string) (w *world, published string, s *corev1.Service) {
	t.Helper()
	w = publishedWorld(t)
	published, s = w.mounted(), w.service("data")
	w.remove(s)
	s.UID, s.ResourceVersion, s.Finalizers = "", "", finalizers
	s.Spec.ClusterIP, s.Spec.ClusterIPs = "10.96.9.9", []string{"10.96.9.9"}
	w.Must(w.API.Create(t.Context(), s))
	return w, published, s
}

func TestWrongAddressOfTerminatingServiceIsNeverPublished(t *testing.T) {
	w, published, s := wrongService(t, "example.com/slow")
	must.Equal(t, w.reconcile("v-1"), again, "delay")
	w.mountedAt(published)
	w.Must(w.API.Get(t.Context(), keyOf("apps", "data"), s))
	s.Finalizers = nil
	w.Must(w.API.Update(t.Context(), s))
	w.reconcile("v-1")
	must.Equal(t, w.service("data").Spec.ClusterIP+":2049", published, "address of the Service")
	w.mountedAt(published)
}

func TestServiceWithNewlyPublishedAddressIsKept(t *testing.T) {
	w, _, s := wrongService(t)
	w.label("10.96.9.9:2049")
	_, err := w.r.Reconcile(t.Context(), request("v-1"))
	must.True(t, err != nil, "no error")
	must.Equal(t, w.service("data").UID, s.UID, "the Service that clients have mounted")
	w.poll()
	w.leads("data", "10.0.0.1:32001")
}

func TestConflictIsTriedAgainWithoutAnError(t *testing.T) {
	w := publishedWorld(t)
	w.Client.Cache = w.API.NewCache()
	s := w.service("data")
	w.Must(w.Client.Cache.Hold(t.Context(), s))
	s.Annotations = map[string]string{"somebody": "else"}
	w.Must(w.API.Update(t.Context(), s))
	w.Attach("v-1", "10.0.0.2:32002")
	w.list()
	must.Equal(t, w.reconcile("v-1"), behind, "delay")
	w.Client.Cache.Release()
	w.reconcile("v-1")
	w.leads("data", "10.0.0.2:32002")
}

func TestServerOfAnotherAddressFamilyIsReported(t *testing.T) {
	w := publishedWorld(t)
	w.Attach("v-1", "[fd00::1]:32001")
	w.poll()
	w.leads("data", "")
	w.reports("Warning WrongFamily")
}

func TestVolumeDeletedBeforeItIsPublished(t *testing.T) {
	w := sharedWorld(t)
	w.Before(func(r *http.Request) {
		if r.Method == http.MethodPut {
			w.Server.Delete("v-1")
		}
	})
	w.poll()
	w.poll()
	w.leads("data", "")
}

func TestNewerPollIsNotOverwritten(t *testing.T) {
	w := sharedWorld(t)
	w.list()
	w.Attach("v-1", "10.0.0.2:32002")
	f, _ := w.r.table.find("v-1")
	w.list()
	w.r.table.setEndpoint(f, "10.96.0.1:2049")
	f, _ = w.r.table.find("v-1")
	must.Equal(t, f.Server.String(), "10.0.0.2:32002")
}

func TestGoneVolumesAreForgottenWithTheirService(t *testing.T) {
	w := publishedWorld(t)
	w.Server.Delete("v-1")
	w.poll()
	must.Equal(t, w.r.table.volumes["v-1"].State, ondat.Gone)
	w.remove(w.service("data"))
	w.poll()
	must.True(t, len(w.r.table.volumes)+len(w.r.table.settled)+len(w.r.table.claims) == 0, "got %+v", w.r.table)
}

func TestClaimOfDeletedVolumePassesToTheNext(t *testing.T) {
	w := publishedWorld(t)
	w.Server.Delete("v-1")
	w.Provision("default-id", "v-2", "pv-1", "data", "apps") // restored from a copy
	w.Attach("v-2", "10.0.0.2:32002")
	w.poll()
	w.poll()
	w.leads("data", "10.0.0.2:32002")
	must.Equal(t, w.service("data").Labels[ondat.VolumeIDLabel], "v-2")
}

func TestStaleCacheIgnoresNoVolume(t *testing.T) {
	w := sharedWorld(t)
	w.Client.Cache = w.API.NewCache()
	w.Client.Cache.Absent(&corev1.PersistentVolumeClaim{ObjectMeta: meta("data")})
	w.poll()
	w.reports("Normal Published: Ondat volume pv-1 is mounted at " + w.service("data").Spec.ClusterIP)
}

// deadlines is a control plane that notes how long it may take.
type deadlines struct {
	API
	left []time.Duration
}

func (d *deadlines) SetMountEndpoint(ctx context.Context, v ondat.Volume, endpoint string) error {
	at, _ := ctx.Deadline()
	d.left = append(d.left, time.Until(at))
	return d.API.SetMountEndpoint(ctx, v, endpoint)
}

func TestWorkForOneVolumeIsBounded(t *testing.T) {
	w := sharedWorld(t)
	d := &deadlines{API: w.r.API}
	w.r.API = d
	w.poll()
	if !slices.ContainsFunc(d.left, func(left time.Duration) bool { return left > 10*time.Second && left <= 20*time.Second }) {
		t.Errorf("got %v", d.left)
	}
}

func TestUnpublishedVolumesAreNotCached(t *testing.T) {
	w := sharedWorld(t)
	w.Server.Fail(bed.Fault{Method: "PUT", Status: 503, Times: 1})
	w.list()
	_, err := w.r.Reconcile(t.Context(), request("v-1"))
	must.True(t, err != nil, "no error")
	must.Equal(t, w.poll(), []string{"v-1"}, "news")
	w.mountedAt(w.service("data").Spec.ClusterIP + ":2049")
}

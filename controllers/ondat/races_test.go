package ondat

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bed "github.com/fairlead-io/fairlead/e2e/ondat"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
)

// Changes while the controller works.

// wrongService is this volume's Service with another address than the published one.
func (w *world) wrongService(finalizers ...string) (published string, s *corev1.Service) {
	w.Helper()
	w.share("10.0.0.1:32001")
	w.poll()
	published, s = w.mounted(), w.service("data")
	w.Must(w.API.Delete(context.Background(), s))
	w.collect(s.UID)
	s.UID, s.ResourceVersion, s.Finalizers = "", "", finalizers
	s.Spec.ClusterIP, s.Spec.ClusterIPs = "10.96.9.9", []string{"10.96.9.9"}
	w.Must(w.API.Create(context.Background(), s))
	w.said()
	return published, s
}

func TestWrongAddressOfTerminatingServiceIsNeverPublished(t *testing.T) {
	w := newWorld(t)
	published, s := w.wrongService("example.com/slow")
	if after := w.reconcile("v-1"); after != again || w.mounted() != published {
		t.Errorf("again after %s, mounted at %s", after, w.mounted())
	}
	w.Must(w.API.Get(t.Context(), keyOf("apps", "data"), s))
	s.Finalizers = nil
	w.Must(w.API.Update(t.Context(), s))
	w.reconcile("v-1")
	if got := w.service("data"); got.Spec.ClusterIP+":2049" != published || w.mounted() != published {
		t.Errorf("was %s, is %s, mounted at %s", published, got.Spec.ClusterIP, w.mounted())
	}
}

func TestServiceWithNewlyPublishedAddressIsKept(t *testing.T) {
	w := newWorld(t)
	_, s := w.wrongService()
	w.Change("v-1", func(v *bed.Volume) { v.Labels["storageos.com/nfs/mount-endpoint"] = "10.96.9.9:2049" })
	if _, err := w.r.Reconcile(t.Context(), request("v-1")); err == nil {
		t.Error("no error")
	}
	if got := w.service("data"); got.UID != s.UID {
		t.Error("the Service that clients have mounted is gone")
	}
	w.poll()
	w.leads("data", "10.0.0.1:32001")
}

func TestConflictIsTriedAgainWithoutAnError(t *testing.T) {
	w := publishedWorld(t)
	w.Client.Cache = w.API.NewCache()
	w.Must(w.Client.Cache.Hold(t.Context(), w.service("data")))
	s := w.service("data")
	s.Annotations = map[string]string{"somebody": "else"}
	w.Must(w.API.Update(t.Context(), s))
	w.Attach("v-1", "10.0.0.2:32002")
	_, err := w.r.poll(t.Context())
	w.Must(err)
	if after := w.reconcile("v-1"); after != behind {
		t.Errorf("again after %s", after)
	}
	w.Client.Cache.Release()
	w.reconcile("v-1")
	w.leads("data", "10.0.0.2:32002")
}

func request(id string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: id}}
}

func TestServerOfAnotherAddressFamilyIsReported(t *testing.T) {
	w := publishedWorld(t)
	w.said()
	w.Attach("v-1", "[fd00::1]:32001")
	w.poll()
	w.leads("data", "")
	if got := w.said(); len(got) != 1 || !strings.HasPrefix(got[0], "Warning WrongFamily") {
		t.Errorf("said %q", got)
	}
}

func TestVolumeDeletedBeforeItIsPublished(t *testing.T) {
	w := newWorld(t)
	w.share("10.0.0.1:32001")
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
	w := newWorld(t)
	w.share("10.0.0.1:32001")
	_, err := w.r.poll(t.Context())
	w.Must(err)
	w.Attach("v-1", "10.0.0.2:32002")
	f := first(w.r.table.find("v-1"))
	_, err = w.r.poll(t.Context())
	w.Must(err)
	w.r.table.setEndpoint(f, "10.96.0.1:2049")
	if now := first(w.r.table.find("v-1")); now.Server.String() != "10.0.0.2:32002" {
		t.Errorf("got %s", now.Server)
	}
}

func TestGoneVolumesAreForgottenWithTheirService(t *testing.T) {
	w := publishedWorld(t)
	w.Server.Delete("v-1")
	w.poll()
	if len(w.r.table.gone) != 1 {
		t.Errorf("got %v", w.r.table.gone)
	}
	s := w.service("data")
	w.Must(w.API.Delete(t.Context(), s))
	w.collect(s.UID)
	w.poll()
	if len(w.r.table.gone)+len(w.r.table.volumes)+len(w.r.table.outcomes)+len(w.r.table.claims) > 0 {
		t.Errorf("got %+v", w.r.table)
	}
}

func TestClaimOfDeletedVolumePassesToTheNext(t *testing.T) {
	w := publishedWorld(t)
	w.Server.Delete("v-1")
	w.Provision("default-id", "v-2", "pv-1", "data", "apps") // restored from a copy
	w.Attach("v-2", "10.0.0.2:32002")
	w.poll()
	w.poll()
	w.leads("data", "10.0.0.2:32002")
	if got := w.service("data"); got.Labels[ondat.VolumeIDLabel] != "v-2" {
		t.Errorf("labels %v", got.Labels)
	}
}

func TestStaleCacheIgnoresNoVolume(t *testing.T) {
	w := newWorld(t)
	w.share("10.0.0.1:32001")
	w.Client.Cache = w.API.NewCache()
	w.Client.Cache.Absent(&corev1.PersistentVolumeClaim{ObjectMeta: meta("data")})
	w.poll()
	if got := w.said(); w.mounted() == "" || len(got) != 1 || !strings.HasPrefix(got[0], "Normal") {
		t.Errorf("mounted at %q, said %q", w.mounted(), got)
	}
}

func TestServiceWithThePublishedAddressCounts(t *testing.T) {
	w := newWorld(t)
	w.share("10.0.0.1:32001")
	claim := get[corev1.PersistentVolumeClaim](w, "data")
	for _, name := range []string{"a", "b", "c"} {
		s := &corev1.Service{ObjectMeta: meta(name)}
		s.Labels = map[string]string{ondat.VolumeIDLabel: "v-1"}
		s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "PersistentVolumeClaim", Name: "data", UID: claim.UID}}
		w.Must(w.API.Create(t.Context(), s))
	}
	published := w.service("b").Spec.ClusterIP + ":2049"
	w.Change("v-1", func(v *bed.Volume) { v.Labels["storageos.com/nfs/mount-endpoint"] = published })
	w.poll()
	w.leads("b", "10.0.0.1:32001")
	if w.mounted() != published {
		t.Errorf("mounted at %s", w.mounted())
	}
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
	w := newWorld(t)
	d := &deadlines{API: w.r.API}
	w.r.API = d
	w.share("10.0.0.1:32001")
	w.poll()
	if !slices.ContainsFunc(d.left, func(left time.Duration) bool { return left > 10*time.Second && left <= 20*time.Second }) {
		t.Errorf("got %v", d.left)
	}
}

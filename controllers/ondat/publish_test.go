package ondat

import (
	"context"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	bed "github.com/fairlead-io/fairlead/internal/testkit/ondat"
)

func TestSharedVolumeIsCreatedAndPublished(t *testing.T) {
	w := newWorld(t)
	w.claim("apps", "data", "pv-1")
	w.Provision("default-id", "v-1", "pv-1", "data", "apps")
	must.Equal(t, w.writes(func() { w.poll() }), nil, "writes for a volume that is not attached")
	w.mountedAt("")
	w.Attach("v-1", "10.0.0.1:32001")
	w.poll()
	s := w.service("data")
	must.True(t, s != nil && len(s.Spec.Selector) == 0 && s.Spec.Type == corev1.ServiceTypeClusterIP, "got %+v", s)
	must.Equal(t, s.Spec.Ports, []corev1.ServicePort{{Name: "nfs", Port: 2049, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(32001)}})
	must.Equal(t, s.OwnerReferences, w.owned("").OwnerReferences)
	must.Equal(t, s.Labels[ondat.VolumeIDLabel], "v-1")
	w.leads("data", "10.0.0.1:32001")
	w.mountedAt(s.Spec.ClusterIP + ":2049")
	w.reports("Normal Published: Ondat volume pv-1 is mounted at " + w.mounted())
}

// The mount endpoint comes last: a crash before it leaves nothing half done.
func TestPublishedOnlyAfterServiceAndSlices(t *testing.T) {
	w := sharedWorld(t)
	for _, want := range []string{"create Service/data", "create EndpointSlice/data-fairlead-ipv4"} {
		w.restart()
		w.Client.CrashAt(0, true)
		w.poll()
		w.fails(fakeapi.ErrCrashed.Error())
		must.Equal(t, w.Client.Wrote(), []string{want})
		w.mountedAt("")
	}
	w.restart()
	w.poll()
	w.mountedAt(w.service("data").Spec.ClusterIP + ":2049")
	w.leads("data", "10.0.0.1:32001")
}

func TestAnswerOfCreateCountsAsSeen(t *testing.T) {
	w := sharedWorld(t)
	w.Client.Cache = w.API.NewCache() // it shows none of what is created
	w.Client.Cache.Absent(&corev1.Service{ObjectMeta: meta("data")})
	w.Client.Cache.Absent(&discoveryv1.EndpointSlice{ObjectMeta: meta("data-fairlead-ipv4")})
	for range 2 {
		w.poll()
		w.mountedAt(w.service("data").Spec.ClusterIP + ":2049")
	}
}

func TestFailoverKeepsAddressAndRemovesDeadServerAtOnce(t *testing.T) {
	w := publishedWorld(t)
	address, uid := w.mounted(), w.service("data").UID
	serves := func(server string, port int32) {
		t.Helper()
		w.leads("data", server)
		w.mountedAt(address)
		s := w.service("data")
		must.Equal(t, s.UID, uid)
		must.Equal(t, s.Spec.Ports[0].TargetPort.IntVal, port)
	}
	w.LoseServer("v-1")
	w.poll()
	serves("", 32001)
	w.Attach("v-1", "10.0.0.2:32777")
	w.poll()
	serves("10.0.0.2:32777", 32777)
	var shown []int // within one poll, the dead address goes first
	w.Client.After = func(write fakeapi.Write) error {
		if s, ok := write.Object.(*discoveryv1.EndpointSlice); ok {
			shown = append(shown, len(s.Endpoints))
		}
		return nil
	}
	w.Attach("v-1", "10.0.0.3:32001")
	w.poll()
	serves("10.0.0.3:32001", 32001)
	must.Equal(t, shown, []int{0, 1}, "endpoints of the slice, one write after the other")
}

func TestUnchangedVolumesCostNoRequests(t *testing.T) {
	w := publishedWorld(t)
	w.Requests()
	w.r.Live = nil // the API server is not asked
	must.Equal(t, w.writes(w.poll), nil, "writes")
	must.Equal(t, w.Requests(), []string{"GET /namespaces", "GET /namespaces/default-id/volumes"})
}

func TestIgnoredVolumesCostNoWrites(t *testing.T) {
	w := publishedWorld(t)
	w.Attach("v-1", "[fd00::1]:32001")
	w.poll()
	must.Equal(t, w.r.outcomes["v-1"].phase, ignored, "another address family")
	must.Equal(t, w.writes(w.poll), nil, "writes")
}

// The cache does not show yet that the PVC is bound.
func TestStaleClaimRefusesNoVolume(t *testing.T) {
	w := newWorld(t)
	c := w.claim("apps", "data", "pv-1")
	c.Status.Phase = corev1.ClaimPending
	w.Must(w.API.Status().Update(t.Context(), c))
	w.Client.Cache = w.API.NewCache()
	w.Must(w.Client.Cache.Hold(t.Context(), c))
	c.Status.Phase = corev1.ClaimBound
	w.Must(w.API.Status().Update(t.Context(), c))
	w.Provision("default-id", "v-1", "pv-1", "data", "apps")
	w.Attach("v-1", "10.0.0.1:32001")
	w.poll()
	w.reports("Normal Published")
}

// Events may follow each other closely.
func TestRoundsKeepTheirDistance(t *testing.T) {
	w := sharedWorld(t)
	round := func() time.Duration {
		t.Helper()
		result, err := w.r.Reconcile(t.Context(), reconcile.Request{})
		w.Must(err)
		return result.RequeueAfter
	}
	must.Equal(t, round(), 5*time.Second, "time to the next poll")
	w.Requests()
	w.Clock.Step(pause - time.Millisecond)
	must.Equal(t, round(), time.Millisecond, "time to the next round")
	must.Equal(t, w.Requests(), nil)
	w.Server.Fail(bed.Fault{Path: "/namespaces", Status: 503})
	w.Clock.Step(time.Millisecond)
	must.Equal(t, round(), 5*time.Second, "time to the next poll")
	w.leads("data", "10.0.0.1:32001") // what is published stays
}

func TestNameByPersistentVolume(t *testing.T) {
	w := sharedWorld(t)
	w.r.Config.ServiceName = ondat.ByPV
	for range 2 {
		w.poll()
		w.leads("pv-1", "10.0.0.1:32001")
		w.mountedAt(w.service("pv-1").Spec.ClusterIP + ":2049")
		must.True(t, w.service("data") == nil, "there is a second Service")
		w.restart() // with another setting: a Service that is there keeps its name
	}
	w.reports("Normal Published")
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

func TestStaleCacheIsNoFailure(t *testing.T) {
	w := publishedWorld(t)
	w.Client.Cache = w.API.NewCache()
	s := w.service("data")
	w.Must(w.Client.Cache.Hold(t.Context(), s))
	s.Annotations = map[string]string{"example.com/owner": "other"}
	w.Must(w.API.Update(t.Context(), s))
	w.Attach("v-1", "10.0.0.2:32002")
	w.poll()
	must.Equal(t, w.r.outcomes["v-1"], outcome{phase: pending})
	w.Client.Cache.Release()
	w.poll()
	w.leads("data", "10.0.0.2:32002")
}

func TestGoneVolumesAreForgottenWithTheirService(t *testing.T) {
	w := publishedWorld(t)
	w.Server.Delete("v-1")
	w.poll()
	must.Equal(t, w.r.outcomes["v-1"].phase, withdrawn)
	w.remove(w.service("data"))
	w.poll()
	must.True(t, len(w.r.outcomes)+len(w.r.volumes) == 0, "got %+v, %+v", w.r.outcomes, w.r.volumes)
}

func TestVolumeThatIsPlainNowIsWithdrawn(t *testing.T) {
	w := publishedWorld(t)
	w.Change("v-1", func(v *bed.Volume) { v.Labels, v.NFS = nil, nil })
	w.poll()
	w.leads("data", "")
}

// deadlines is a control plane that notes how long it may take.
type deadlines struct {
	API
	set time.Duration
}

func (d *deadlines) SetMountEndpoint(ctx context.Context, v ondat.Volume, endpoint string) error {
	at, _ := ctx.Deadline()
	d.set = time.Until(at)
	return d.API.SetMountEndpoint(ctx, v, endpoint)
}

func TestWorkForOneVolumeIsBounded(t *testing.T) {
	w := sharedWorld(t)
	d := &deadlines{API: w.r.API}
	w.r.API = d
	w.poll()
	must.True(t, d.set > volumeLimit/2 && d.set <= volumeLimit, "got %s", d.set)
}

// The Service is deleted while the control plane does not answer, right after the first publication.
func TestDeletedServiceComesBackWithoutTheControlPlane(t *testing.T) {
	w := publishedWorld(t)
	address := w.mounted()
	w.remove(w.service("data"))
	w.Server.Fail(bed.Fault{Status: 503})
	w.poll()
	must.Equal(t, w.service("data").Spec.ClusterIP+":2049", address, "address of the Service")
	w.leads("data", "10.0.0.1:32001")
}

package ondat

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	bed "github.com/fairlead-io/fairlead/e2e/ondat"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
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
		w.list()
		_, err := w.r.Reconcile(t.Context(), request("v-1"))
		must.True(t, errors.Is(err, fakeapi.ErrCrashed), "got %v", err)
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
		w.reconcile("v-1")
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
	must.Equal(t, w.poll(), []string{"v-1"}, "news")
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

func TestCacheSparesKubernetesAndExpires(t *testing.T) {
	w := publishedWorld(t)
	w.Requests()
	for range 5 {
		must.Equal(t, w.poll(), nil, "news")
	}
	if got := w.Requests(); len(got) != 10 || slices.ContainsFunc(got, func(r string) bool { return !strings.HasPrefix(r, "GET /namespaces") }) {
		t.Errorf("asked %q", got)
	}
	w.Clock.Step(59 * time.Second)
	must.Equal(t, w.poll(), nil, "news")
	w.Clock.Step(time.Second)
	must.Equal(t, w.writes(func() { must.Equal(t, w.poll(), []string{"v-1"}, "news after the expiry") }), nil, "writes")
	must.Equal(t, w.poll(), nil, "news")
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

func TestPollsBackOffWhileTheyFail(t *testing.T) {
	w := publishedWorld(t)
	var pauses []time.Duration
	for _, err := range []error{errors.New("1"), errors.New("2"), errors.New("3"), errors.New("4"), errors.New("5"), nil, errors.New("1")} {
		pauses = append(pauses, w.r.pause(err)/time.Second)
	}
	must.Equal(t, pauses, []time.Duration{5, 10, 20, 30, 30, 5, 5}, "seconds")
	w.Server.Fail(bed.Fault{Path: "/namespaces", Status: 503})
	_, err := w.r.poll(t.Context())
	must.True(t, err != nil, "no error")
	w.leads("data", "10.0.0.1:32001") // what is published stays
}

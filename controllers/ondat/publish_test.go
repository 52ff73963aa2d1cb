//lint:file-ignore SA1019 the readers of the deprecated API are served too

package ondat

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	bed "github.com/fairlead-io/fairlead/e2e/ondat"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
)

func TestSharedVolumeIsCreatedAndPublished(t *testing.T) {
	w := newWorld(t)
	w.claim("apps", "data", "pv-1")
	w.Provision("default-id", "v-1", "pv-1", "data", "apps")
	w.poll()
	if w.service("data") != nil || w.mounted() != "" {
		t.Fatal("a volume that is not attached is published")
	}
	w.Attach("v-1", "10.0.0.1:32001")
	w.poll()
	s := w.service("data")
	if s == nil || len(s.Spec.Selector) > 0 || s.Spec.Type != corev1.ServiceTypeClusterIP || len(s.Spec.Ports) != 1 {
		t.Fatalf("got %+v", s)
	}
	if p := s.Spec.Ports[0]; p.Name != "nfs" || p.Port != 2049 || p.Protocol != corev1.ProtocolTCP || p.TargetPort.IntVal != 32001 {
		t.Errorf("port %+v", p)
	}
	claim := get[corev1.PersistentVolumeClaim](w, "data")
	if o := s.OwnerReferences; len(o) != 1 || o[0].APIVersion != "v1" || o[0].Kind != "PersistentVolumeClaim" || o[0].UID != claim.UID || o[0].Controller != nil {
		t.Errorf("owners %+v", o)
	}
	if s.Labels["storageos.com/volume-id"] != "v-1" {
		t.Errorf("labels %v", s.Labels)
	}
	w.leads("data", "10.0.0.1:32001")
	e := get[corev1.Endpoints](w, "data")
	if e == nil || e.Subsets[0].Addresses[0].IP != "10.0.0.1" || e.Subsets[0].Ports[0].Port != 32001 || e.Labels["storageos.com/volume-id"] != "v-1" {
		t.Errorf("got %+v", e)
	}
	if w.mounted() != s.Spec.ClusterIP+":2049" {
		t.Errorf("mounted at %q, ClusterIP %s", w.mounted(), s.Spec.ClusterIP)
	}
	if got := w.said(); len(got) != 1 || !strings.HasPrefix(got[0], "Normal Published: Ondat volume pv-1 is mounted at "+w.mounted()) {
		t.Errorf("said %q", got)
	}
}

// The mount endpoint comes last: a crash before it leaves nothing half done.
func TestPublishedOnlyAfterServiceAndSlices(t *testing.T) {
	w := newWorld(t)
	w.share("10.0.0.1:32001")
	kinds := map[string]bool{}
	for range 10 {
		w.restart()
		w.Client.Before = func(write fakeapi.Write) error {
			kind := write.Verb
			switch write.Object.(type) {
			case *corev1.Service:
				kind += " Service"
			case *discoveryv1.EndpointSlice:
				kind += " EndpointSlice"
			case *corev1.Endpoints:
				kind += " Endpoints"
			}
			if kinds[kind] {
				return nil
			}
			kinds[kind] = true
			return errors.New("crashed before " + kind)
		}
		ids, err := w.r.poll(t.Context())
		w.Must(err)
		if len(ids) == 0 {
			break
		}
		if _, err := w.r.reconcile(t.Context(), first(w.r.table.find("v-1"))); err == nil {
			break
		}
		if w.mounted() != "" {
			t.Fatalf("published after %v", kinds)
		}
	}
	if len(kinds) != 3 || w.mounted() == "" {
		t.Errorf("crashed before %v, mounted at %q", kinds, w.mounted())
	}
	w.leads("data", "10.0.0.1:32001")
}

func first[T any](v T, _ bool) T { return v }

func TestAnswerOfCreateCountsAsSeen(t *testing.T) {
	w := newWorld(t)
	w.share("10.0.0.1:32001")
	w.Client.Cache = w.API.NewCache() // it shows none of what is created
	w.Client.Cache.Absent(&corev1.Service{ObjectMeta: meta("data")})
	w.Client.Cache.Absent(&discoveryv1.EndpointSlice{ObjectMeta: meta("data-fairlead-ipv4")})
	w.Client.Cache.Absent(&corev1.Endpoints{ObjectMeta: meta("data")})
	w.poll()
	if w.mounted() == "" {
		t.Error("it waits for the cache")
	}
	address := w.mounted()
	w.reconcile("v-1") // the cache is still behind
	if w.mounted() != address {
		t.Errorf("was %s, is %s", address, w.mounted())
	}
}

func TestFailoverKeepsAddressAndRemovesDeadServerAtOnce(t *testing.T) {
	w := publishedWorld(t)
	address, uid := w.mounted(), w.service("data").UID
	w.LoseServer("v-1")
	if got := w.poll(); !slices.Equal(got, []string{"v-1"}) {
		t.Fatalf("news of %v", got)
	}
	w.leads("data", "")
	if e := get[corev1.Endpoints](w, "data"); len(e.Subsets) > 0 {
		t.Errorf("got %+v", e.Subsets)
	}
	if s := w.service("data"); s == nil || s.UID != uid || w.mounted() != address || s.Spec.Ports[0].TargetPort.IntVal != 32001 {
		t.Errorf("got %+v, mounted at %s", s, w.mounted())
	}
	w.Attach("v-1", "10.0.0.2:32777")
	w.poll()
	w.leads("data", "10.0.0.2:32777")
	if s := w.service("data"); s.UID != uid || w.mounted() != address || s.Spec.Ports[0].TargetPort.IntVal != 32777 {
		t.Errorf("got %+v, mounted at %s", s, w.mounted())
	}
	// Within one poll: the dead address goes first.
	var shown []int
	w.Client.After = func(write fakeapi.Write) error {
		if s, ok := write.Object.(*discoveryv1.EndpointSlice); ok {
			shown = append(shown, len(s.Endpoints))
		}
		return nil
	}
	w.Attach("v-1", "10.0.0.3:32001")
	w.poll()
	w.leads("data", "10.0.0.3:32001")
	if !slices.Equal(shown, []int{0, 1}) || w.mounted() != address {
		t.Errorf("the slice had %v endpoints, one after the other", shown)
	}
}

func TestCacheSparesKubernetesAndExpires(t *testing.T) {
	w := publishedWorld(t)
	w.Requests()
	for range 5 {
		if got := w.poll(); len(got) > 0 {
			t.Fatalf("news of %v", got)
		}
	}
	if got := w.Requests(); len(got) != 10 || slices.ContainsFunc(got, func(r string) bool { return !strings.HasPrefix(r, "GET /namespaces") }) {
		t.Errorf("asked %q", got)
	}
	w.Clock.Step(59 * time.Second)
	if got := w.poll(); len(got) > 0 {
		t.Errorf("news of %v", got)
	}
	w.Clock.Step(time.Second)
	got := w.writes(func() {
		if got := w.poll(); len(got) != 1 {
			t.Errorf("expired: news of %v", got)
		}
	})
	if len(got) > 0 {
		t.Errorf("nothing has changed, and it wrote %q", got)
	}
	if got := w.poll(); len(got) > 0 {
		t.Errorf("news of %v", got)
	}
}

func TestUnpublishedVolumesAreNotCached(t *testing.T) {
	w := newWorld(t)
	w.share("10.0.0.1:32001")
	w.Server.Fail(bed.Fault{Method: "PUT", Status: 503, Times: 1})
	ids, err := w.r.poll(t.Context())
	w.Must(err)
	if _, err := w.r.reconcile(t.Context(), first(w.r.table.find(ids[0]))); err == nil {
		t.Fatal("no error")
	}
	if got := w.poll(); len(got) != 1 || w.mounted() == "" {
		t.Errorf("news of %v, mounted at %q", got, w.mounted())
	}
}

func TestNameByPersistentVolume(t *testing.T) {
	w := newWorld(t)
	w.r.Options.Naming = ondat.ByPV
	w.share("10.0.0.1:32001")
	w.poll()
	w.leads("pv-1", "10.0.0.1:32001")
	if w.service("data") != nil || w.mounted() != w.service("pv-1").Spec.ClusterIP+":2049" {
		t.Errorf("mounted at %s", w.mounted())
	}
	// The setting changes: a Service that is there keeps its name.
	w.restart()
	w.poll()
	if w.service("data") != nil || len(w.said()) != 1 {
		t.Error("a second Service")
	}
}

func TestPollsBackOffWhileTheyFail(t *testing.T) {
	w := publishedWorld(t)
	var pauses []time.Duration
	for range 5 {
		pauses = append(pauses, w.r.pause(errors.New("x")))
	}
	pauses = append(pauses, w.r.pause(nil), w.r.pause(errors.New("x")))
	if want := []time.Duration{5, 10, 20, 30, 30, 5, 5}; !slices.EqualFunc(pauses, want, func(a, b time.Duration) bool { return a == b*time.Second }) {
		t.Errorf("got %v", pauses)
	}
	w.Server.Fail(bed.Fault{Path: "/namespaces", Status: 503})
	if _, err := w.r.poll(context.Background()); err == nil {
		t.Error("no error")
	}
	w.leads("data", "10.0.0.1:32001") // what is published stays
}

//lint:file-ignore SA1019 the readers of the deprecated API are served too

package ondat

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bed "github.com/fairlead-io/fairlead/e2e/ondat"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
	"github.com/fairlead-io/fairlead/internal/testkit"
)

// The tests of this file are about faults of the released manager (api-manager,
// 2021-07). Those of its client are in internal/nfs/ondat/rest.

// controller.go: frontend joins address and port without brackets.
func TestIPv6AddressIsPublishedInBrackets(t *testing.T) {
	w := newWorld(t)
	w.share("[fd00::1]:32001")
	w.poll()
	if got := w.mounted(); got != "[fd00:96::1]:2049" {
		t.Errorf("mounted at %q", got)
	}
	w.leads("data", "[fd00::1]:32001")
	// An endpoint that was published without brackets is corrected.
	w.Change("v-1", func(v *bed.Volume) { v.Labels["storageos.com/nfs/mount-endpoint"] = "fd00:96::1:2049" })
	w.poll()
	if got := w.mounted(); got != "[fd00:96::1]:2049" {
		t.Errorf("mounted at %q", got)
	}
}

// ensureService publishes whatever address the next Service gets.
func TestDeletedServiceComesBackWithItsAddress(t *testing.T) {
	w := publishedWorld(t)
	address, old := w.mounted(), w.service("data")
	w.restart() // the address is in the volume's label
	w.poll()
	w.Must(w.API.Delete(t.Context(), old))
	w.collect(old.UID)
	w.deleted(old)
	if s := w.service("data"); s == nil || s.UID == old.UID || s.Spec.ClusterIP+":2049" != address || w.mounted() != address {
		t.Fatalf("was %s, is %+v, mounted at %s", address, s, w.mounted())
	}
	w.leads("data", "10.0.0.1:32001")
	if w.said() == nil {
		t.Error("there is no event")
	}
}

// deleted reconciles what the event of a deletion enqueues, without a poll.
func (w *world) deleted(o client.Object) {
	w.Helper()
	requests := volumeOf(context.Background(), o)
	if len(requests) != 1 {
		w.Fatalf("the event enqueues %v", requests)
	}
	w.reconcile(requests[0].Name)
}

func TestServiceWithAnotherAddressIsReplaced(t *testing.T) {
	w := publishedWorld(t)
	address, s := w.mounted(), w.service("data")
	w.Must(w.API.Delete(t.Context(), s))
	w.collect(s.UID)
	again := s.DeepCopy() // kubectl apply of an old copy
	again.UID, again.ResourceVersion, again.Spec.ClusterIP, again.Spec.ClusterIPs = "", "", "", nil
	other := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "else", Name: "x"}}
	other.Spec.ClusterIP = strings.TrimSuffix(address, ":2049")
	w.Must(w.API.Create(t.Context(), other)) // it has the address for a while
	w.Must(w.API.Create(t.Context(), again))
	w.reconcile("v-1")
	if got := w.said(); w.mounted() != address || !slices.ContainsFunc(got, func(s string) bool {
		return strings.HasPrefix(s, "Warning AddressUnavailable: Service data cannot have its address")
	}) {
		t.Errorf("mounted at %s, said %q", w.mounted(), got)
	}
	w.leads("data", "")
	w.Must(w.API.Delete(t.Context(), other))
	w.Clock.Step(time.Minute)
	w.poll()
	if s := w.service("data"); s.Spec.ClusterIP+":2049" != address || w.mounted() != address {
		t.Errorf("was %s, is %s, mounted at %s", address, s.Spec.ClusterIP, w.mounted())
	}
	w.leads("data", "10.0.0.1:32001")
}

func TestTakenAddressIsReplacedOnlyIfAllowed(t *testing.T) {
	w := newWorld(t)
	w.share("10.0.0.1:32001")
	w.Change("v-1", func(v *bed.Volume) { v.Labels["storageos.com/nfs/mount-endpoint"] = "10.96.7.7:2049" })
	other := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "else", Name: "x"}}
	other.Spec.ClusterIP = "10.96.7.7"
	w.Must(w.API.Create(t.Context(), other))
	w.poll()
	if got := w.said(); len(got) != 1 || !strings.Contains(got[0], "annotate PersistentVolumeClaim data with fairlead.io/replace-address=10.96.7.7") || w.mounted() != "10.96.7.7:2049" {
		t.Fatalf("mounted at %s, said %q", w.mounted(), got)
	}
	claim := get[corev1.PersistentVolumeClaim](w, "data")
	for _, address := range []string{"10.96.7.8", "10.96.7.7"} {
		if w.mounted() != "10.96.7.7:2049" {
			t.Errorf("mounted at %s", w.mounted())
		}
		claim.Annotations = map[string]string{ReplaceAnnotation: address}
		w.Must(w.API.Update(t.Context(), claim))
		for _, request := range w.r.volumesOfClaim(t.Context(), claim) {
			w.reconcile(request.Name)
		}
	}
	if s := w.service("data"); s == nil || w.mounted() != s.Spec.ClusterIP+":2049" || w.mounted() == "10.96.7.7:2049" {
		t.Errorf("mounted at %s", w.mounted())
	}
}

// ensureService adopts any Service of the name.
func TestForeignServiceIsNeitherAdoptedNorPublished(t *testing.T) {
	w := newWorld(t)
	foreign := &corev1.Service{ObjectMeta: meta("data"), Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "db"}}}
	w.Must(w.API.Create(t.Context(), foreign))
	w.share("10.0.0.1:32001")
	w.poll()
	if s := w.service("data"); s.Spec.Selector["app"] != "db" || len(s.OwnerReferences) > 0 || w.mounted() != "" || len(w.led("data")) > 0 {
		t.Errorf("got %+v, mounted at %q", s, w.mounted())
	}
	if got := w.said(); len(got) != 1 || !strings.Contains(got[0], "Warning ForeignService: Ondat volume pv-1 is not published: Service data does not belong to PersistentVolumeClaim data") || !strings.Contains(got[0], "ondat.serviceName") {
		t.Errorf("said %q", got)
	}
	w.Must(w.API.Delete(t.Context(), foreign))
	w.Clock.Step(time.Minute)
	w.poll()
	w.leads("data", "10.0.0.1:32001")
}

func TestWrongServerAddressMakesNoService(t *testing.T) {
	w := newWorld(t)
	for _, server := range []string{":2049", "0.0.0.0:1", "127.0.0.1:1", "nfs.example:1", "[fe80::1%eth0]:1", "10.0.0.1:0", "10.0.0.1:70000"} {
		w.share(server)
		writes := w.writes(func() { w.poll() })
		if got := w.said(); len(writes) > 0 || len(got) != 1 || !strings.HasPrefix(got[0], "Warning InvalidEndpoint") || w.mounted() != "" {
			t.Errorf("%s: wrote %q, said %q", server, writes, got)
		}
		w.Must(w.API.Delete(t.Context(), get[corev1.PersistentVolumeClaim](w, "data")))
		w.restart()
	}
}

// ListSharedVolumes drops the volumes of all namespaces.
func TestNamespaceThatFailsKeepsWhatItHas(t *testing.T) {
	w := newWorld(t)
	w.share("10.0.0.1:32001")
	w.AddNamespace("b-id", "b")
	w.Provision("b-id", "v-2", "pv-2", "other", "apps")
	w.claim("apps", "other", "pv-2")
	w.poll()
	w.Attach("v-2", "10.0.0.2:32002")
	for _, status := range []int{403, 500} {
		w.Server.Fail(bed.Fault{Path: "/namespaces/default-id/volumes", Status: status})
		w.restart() // what it knows of v-1 it knows from the Service alone
		w.poll()
		w.leads("data", "10.0.0.1:32001")
		w.leads("other", "10.0.0.2:32002")
		w.Recover()
		w.poll()
		w.Server.Fail(bed.Fault{Path: "/namespaces/default-id/volumes", Status: status})
		w.poll()
		w.leads("data", "10.0.0.1:32001")
		w.Recover()
	}
	w.DeleteNamespace("default-id") // it may be hidden; and nothing else is known
	w.poll()
	w.leads("data", "10.0.0.1:32001")
}

// The released manager sleeps a second for each object (wait.Poll), one object after the other.
func TestNewVolumesWaitForNothing(t *testing.T) {
	w := newWorld(t)
	for i := range 50 {
		id := fmt.Sprintf("v-%d", i)
		w.claim("apps", "data-"+id, "pv-"+id)
		w.Provision("default-id", id, "pv-"+id, "data-"+id, "apps")
		w.Attach(id, fmt.Sprintf("10.0.0.%d:32001", i+1))
	}
	w.poll() // the clock stands still
	if got := w.Metric("fairlead_ondat_volumes", "published"); got != 50 {
		t.Errorf("%v volumes published", got)
	}
	if got := w.Metric("storageos_shared_volume_reconcile_duration_seconds"); got != 1 {
		t.Errorf("%v rounds", got)
	}
}

// getVolumeByID looks for the volume in a StorageOS namespace of the PVC's namespace's name.
func TestNamespacesOfOndatAreNotThoseOfKubernetes(t *testing.T) {
	w := newWorld(t)
	w.AddNamespace("apps-id", "apps")
	w.AddNamespace("team-id", "team")
	w.claim("apps", "data", "pv-1")
	w.Provision("team-id", "v-1", "pv-1", "data", "apps")
	w.Attach("v-1", "10.0.0.1:32001")
	w.poll()
	if w.mounted() == "" {
		t.Error("not published")
	}
}

// toSharedVolume does not compare the PVC with the volume.
func TestForeignClaimOwnsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		want   string
	}{
		"bound to another": {func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv-9" }, "Warning ClaimNotBound"},
		"not bound":        {func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "" }, "Warning ClaimNotBound"},
		"terminating":      {func(c *corev1.PersistentVolumeClaim) { c.Finalizers = []string{"kubernetes.io/pvc-protection"} }, "Warning ClaimTerminating"},
	} {
		w := newWorld(t)
		w.share("10.0.0.1:32001")
		claim := get[corev1.PersistentVolumeClaim](w, "data")
		c.change(claim)
		w.Must(w.API.Update(t.Context(), claim))
		if len(claim.Finalizers) > 0 {
			w.Must(w.API.Delete(t.Context(), claim))
		}
		w.poll()
		if got := w.said(); w.service("data") != nil || w.mounted() != "" || len(got) != 1 || !strings.HasPrefix(got[0], c.want) {
			t.Errorf("%s: mounted at %q, said %q", name, w.mounted(), got)
		}
	}
}

func TestServiceOfATerminatingClaimIsKeptUp(t *testing.T) {
	w := newWorld(t)
	w.share("10.0.0.1:32001")
	claim := get[corev1.PersistentVolumeClaim](w, "data")
	claim.Finalizers = []string{"kubernetes.io/pvc-protection"} // a pod uses it
	w.Must(w.API.Update(t.Context(), claim))
	w.poll()
	w.Must(w.API.Delete(t.Context(), claim))
	w.Attach("v-1", "10.0.0.2:32002")
	w.poll()
	w.leads("data", "10.0.0.2:32002")
}

func TestRecreatedClaimGetsItsOwnService(t *testing.T) {
	w := publishedWorld(t)
	old, address := get[corev1.PersistentVolumeClaim](w, "data"), w.mounted()
	w.Must(w.API.Delete(t.Context(), old))
	claim := w.claim("apps", "data", "pv-1")
	if after := w.reconcile("v-1"); after != again { // the old Service is not collected yet
		t.Errorf("again after %s", after)
	}
	if got := w.said(); len(got) != 1 || strings.Contains(got[0], "Warning") {
		t.Errorf("said %q", got)
	}
	w.collect(old.UID)
	w.reconcile("v-1")
	if s := w.service("data"); s == nil || s.OwnerReferences[0].UID != claim.UID || w.mounted() != address {
		t.Errorf("got %+v, mounted at %s", s, w.mounted())
	}
}

// The released manager only logs a stale version and lists the namespaces for each publication.
func TestPublishingIsOneRequestAndRetriedAtOnce(t *testing.T) {
	w := newWorld(t)
	w.share("10.0.0.1:32001")
	w.Requests()
	w.poll()
	got := w.Requests()
	if want := "PUT /namespaces/default-id/volumes/v-1/nfs/mount-endpoint"; len(got) != 4 || got[3] != want {
		t.Errorf("asked %q", got)
	}
	w = newWorld(t)
	w.share("10.0.0.1:32001")
	changed := false
	w.Before(func(r *http.Request) {
		if r.Method == http.MethodPut && !changed {
			changed = true
			w.Change("v-1", func(v *bed.Volume) { v.Description = "changed meanwhile" })
		}
	})
	w.poll()
	if !changed || w.mounted() == "" {
		t.Error("not published in the same poll")
	}
}

// The released manager ignores volumes without an event and labels a metric with error texts.
func TestIgnoredVolumesAreReportedOnce(t *testing.T) {
	w := newWorld(t)
	w.share("10.0.0.1:32001")
	w.Change("v-1", func(v *bed.Volume) { delete(v.Labels, "csi.storage.k8s.io/pv/name") })
	for range 3 {
		w.poll()
		w.Clock.Step(time.Minute)
	}
	got := w.Events.About("Warning MissingLabels PersistentVolumeClaim/data: Ondat volume pv-1 is shared and lacks the label csi.storage.k8s.io/pv/name")
	if len(got) != 1 || len(w.said()) != 1 {
		t.Errorf("said %q", got)
	}
	if one, all := w.Metric("fairlead_ondat_ignored_volumes", "MissingLabels"), w.Metric("fairlead_ondat_ignored_volumes"); one != 1 || all != 1 {
		t.Errorf("%v ignored for missing labels, %v in all", one, all)
	}
	for _, reason := range ondat.Reasons {
		if _, found := testkit.Metric(w, w.Registry, "fairlead_ondat_ignored_volumes", string(reason)); !found {
			t.Errorf("no metric of volumes ignored for %s", reason)
		}
	}
	w.Change("v-1", func(v *bed.Volume) { v.Labels["csi.storage.k8s.io/pv/name"] = "pv-1" })
	w.poll()
	if got, found := testkit.Metric(w, w.Registry, "fairlead_ondat_ignored_volumes", "MissingLabels"); got != 0 || !found {
		t.Errorf("%v ignored, reported: %v", got, found)
	}
	w.Change("v-1", func(v *bed.Volume) { *v.NFS.ServiceEndpoint = "x" })
	w.poll()
	w.leads("data", "") // the address is not known now
	if got := w.Metric("fairlead_ondat_volumes", "ignored"); got != 1 {
		t.Errorf("%v volumes ignored", got)
	}
	// No PVC to say it on.
	w.said()
	w.Provision("default-id", "v-9", "pv-9", "none", "apps")
	w.Attach("v-9", "10.0.0.9:32009")
	w.poll()
	if got := w.Metric("fairlead_ondat_ignored_volumes", "ClaimMissing"); got != 1 || len(w.said()) > 0 {
		t.Errorf("%v ignored for missing PVCs", got)
	}
}

// Endpoints keep the address of a server that is gone, and another volume's may get it.
func TestNoSliceNamesALostServer(t *testing.T) {
	w := publishedWorld(t)
	address := w.mounted()
	w.Detach("v-1")
	w.poll()
	w.leads("data", "")
	if w.service("data") == nil || w.mounted() != address {
		t.Error("the Service and the label belong to the PVC")
	}
	w.Attach("v-1", "10.0.0.1:32001")
	w.poll()
	w.claim("apps", "other", "pv-2")
	w.Provision("default-id", "v-2", "pv-2", "other", "apps")
	w.Attach("v-2", "10.0.0.1:32001")
	w.poll()
	w.leads("data", "")
	w.leads("other", "")
	w.LoseServer("v-1")
	w.poll()
	w.leads("other", "10.0.0.1:32001")
	w.Server.Delete("v-2")
	w.poll()
	w.leads("other", "")
}

func TestAbsentVolumeIsWithdrawnAfterARestartToo(t *testing.T) {
	w := publishedWorld(t)
	w.Server.Delete("v-1")
	w.restart()
	w.reconcile("v-1") // of the Service's first event: nothing was listed yet
	w.leads("data", "10.0.0.1:32001")
	w.poll()
	w.leads("data", "")
	if got := w.writes(func() { w.poll() }); len(got) > 0 {
		t.Errorf("wrote %q", got)
	}
}

// With reclaim policy Retain the label names an address that somebody else may get.
func TestLabelIsClearedOnceDetachedAndClaimDeleted(t *testing.T) {
	w := publishedWorld(t)
	claim := get[corev1.PersistentVolumeClaim](w, "data")
	w.Must(w.API.Delete(t.Context(), claim))
	w.collect(claim.UID)
	w.LoseServer("v-1")
	w.poll()
	if w.mounted() == "" {
		t.Error("the volume is still attached")
	}
	w.Detach("v-1")
	w.poll()
	if got := w.mounted(); got != "" {
		t.Errorf("mounted at %q", got)
	}
	if got := w.poll(); len(got) > 0 {
		t.Errorf("news of %v", got)
	}
	// The volume is used again, through a new PVC.
	w.claim("apps", "data", "pv-1")
	w.Attach("v-1", "10.0.0.1:32001")
	w.poll()
	w.leads("data", "10.0.0.1:32001")
	if w.mounted() == "" {
		t.Error("not published")
	}
}

func TestRefusedLabelRemovalIsNotRepeated(t *testing.T) {
	w := publishedWorld(t)
	claim := get[corev1.PersistentVolumeClaim](w, "data")
	w.Must(w.API.Delete(t.Context(), claim))
	w.Detach("v-1")
	w.Server.Fail(bed.Fault{Method: http.MethodPut, Status: http.StatusBadRequest})
	w.Requests()
	for range 3 {
		w.poll()
	}
	if got := w.Requests(); slices.Index(got, "PUT /namespaces/default-id/volumes/v-1/nfs/mount-endpoint") < 0 || len(got) != 7 {
		t.Errorf("asked %q", got)
	}
}

// The released manager has no metrics or health until the API answers, and its process
// ends when the token is not refreshed.
func TestProcessSurvivesAnUnreachableControlPlane(t *testing.T) {
	w := newWorld(t)
	w.Server.Fail(bed.Fault{Status: http.StatusServiceUnavailable})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.r.Start(ctx) }()
	w.r.poller.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	close(w.r.poller.ready)
	for !w.Clock.HasWaiters() {
		select {
		case err := <-ended:
			t.Fatalf("ended: %v", err)
		default:
		}
	}
	for _, p := range phases {
		if _, found := testkit.Metric(w, w.Registry, "fairlead_ondat_volumes", string(p)); !found {
			t.Errorf("no metric of volumes in state %s", p)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("got %v", err)
	}
}

// The released manager notices a Service deleted by hand after up to 65 s.
func TestEventsOfAllObjectsReachTheVolume(t *testing.T) {
	w := publishedWorld(t)
	for _, o := range []client.Object{w.service("data"), get[discoveryv1.EndpointSlice](w, "data-fairlead-ipv4"), get[corev1.Endpoints](w, "data")} {
		w.Must(w.API.Delete(t.Context(), o))
		w.deleted(o)
		w.leads("data", "10.0.0.1:32001")
		if w.service("data") == nil || get[corev1.Endpoints](w, "data") == nil {
			t.Errorf("%T is not back", o)
		}
	}
	if got := w.r.volumesOfClaim(t.Context(), get[corev1.PersistentVolumeClaim](w, "data")); len(got) != 1 || got[0].Name != "v-1" {
		t.Errorf("a PVC enqueues %v", got)
	}
	if got := volumeOf(t.Context(), &corev1.Service{}); got != nil {
		t.Errorf("a Service without the label enqueues %v", got)
	}
}

// The released manager's Service has the PV's name and lacks Fairlead's label; its
// Endpoints are mirrored.
func TestServiceOfTheReleasedManagerIsTakenOver(t *testing.T) {
	w := newWorld(t)
	w.share("10.0.0.1:32001")
	claim := get[corev1.PersistentVolumeClaim](w, "data")
	s := &corev1.Service{ObjectMeta: meta("pv-1"), Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, SessionAffinity: corev1.ServiceAffinityNone, Ports: []corev1.ServicePort{{Name: "nfs", Port: 2049, Protocol: corev1.ProtocolTCP}},
	}}
	s.Labels = map[string]string{"storageos.com/volume-id": "v-1"}
	s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "PersistentVolumeClaim", Name: "data", UID: claim.UID}}
	e := &corev1.Endpoints{ObjectMeta: meta("pv-1"), Subsets: []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: "10.0.0.8"}}, Ports: []corev1.EndpointPort{{Name: "nfs", Port: 32008}}}}}
	w.Must(w.API.Create(t.Context(), s))
	w.Must(w.API.Create(t.Context(), e))
	address := s.Spec.ClusterIP + ":2049"
	w.Change("v-1", func(v *bed.Volume) { v.Labels["storageos.com/nfs/mount-endpoint"] = address })
	w.Client.Cache = w.API.NewCache() // which holds what has Fairlead's label
	w.Client.Cache.Absent(s)
	w.Client.Cache.Absent(e)
	w.poll()
	w.leads("pv-1", "10.0.0.1:32001")
	got, classic := w.service("pv-1"), get[corev1.Endpoints](w, "pv-1")
	if got.UID != s.UID || got.Labels["fairlead.io/nfs-service"] != "ondat_v-1" || w.mounted() != address || w.service("data") != nil {
		t.Errorf("got %+v, mounted at %s", got, w.mounted())
	}
	if classic.Labels[discoveryv1.LabelSkipMirror] != "true" || classic.Subsets[0].Addresses[0].IP != "10.0.0.1" {
		t.Errorf("got %+v", classic)
	}
}

func TestOneClaimServesOneVolume(t *testing.T) {
	w := publishedWorld(t)
	w.said()
	w.Provision("default-id", "v-2", "pv-1", "data", "apps") // its labels were copied
	w.Attach("v-2", "10.0.0.2:32002")
	w.poll()
	w.leads("data", "10.0.0.1:32001")
	if got := w.said(); len(got) != 1 || !strings.HasPrefix(got[0], "Warning ClaimOfTwoVolumes") {
		t.Errorf("said %q", got)
	}
}

//lint:file-ignore SA1019 the released manager writes the deprecated API

package ondat

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	bed "github.com/fairlead-io/fairlead/internal/testkit/ondat"
)

// The tests of this file are about faults of the released manager (api-manager,
// 2021-07). Those of its client are in internal/nfs/ondat/rest.

// controller.go: frontend joins address and port without brackets.
func TestIPv6AddressIsPublishedInBrackets(t *testing.T) {
	w := newWorld(t)
	w.share("[fd00::1]:32001")
	w.poll()
	w.mountedAt("[fd00:96::1]:2049")
	w.leads("data", "[fd00::1]:32001")
	w.label("fd00:96::1:2049") // without brackets
	w.poll()
	w.mountedAt("[fd00:96::1]:2049")
}

// The released manager notices a Service deleted by hand after up to 65 s, and publishes
// whatever address the next Service gets (ensureService).
func TestDeletedObjectsComeBack(t *testing.T) {
	w := publishedWorld(t)
	address := w.mounted()
	w.restart() // the address is in the volume's label
	for _, o := range []client.Object{get[discoveryv1.EndpointSlice](w, "data-fairlead-ipv4"), w.service("data")} {
		w.remove(o)
		w.poll()
		w.leads("data", "10.0.0.1:32001")
		must.Equal(t, w.service("data").Spec.ClusterIP+":2049", address, "address of the Service")
	}
	w.mountedAt(address)
}

// taken creates a foreign Service with an address.
func (w *world) taken(address string) *corev1.Service {
	w.Helper()
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "else", Name: "x"}, Spec: corev1.ServiceSpec{ClusterIP: address}}
	w.Must(w.API.Create(context.Background(), s))
	return s
}

func TestServiceWithAnotherAddressLeadsNowhere(t *testing.T) {
	w := publishedWorld(t)
	address, s := w.mounted(), w.service("data")
	w.remove(s)
	again := s.DeepCopy() // kubectl apply of an old copy
	again.UID, again.ResourceVersion, again.Spec.ClusterIP, again.Spec.ClusterIPs = "", "", "", nil
	other := w.taken(s.Spec.ClusterIP)
	w.Must(w.API.Create(t.Context(), again))
	w.poll()
	w.reports("Warning WrongAddress: Ondat volume pv-1 is not published: Service data has address")
	w.leads("data", "")
	w.remove(w.service("data")) // as the event says
	w.poll()
	w.reports("Warning AddressUnavailable: Service data cannot have its address")
	w.remove(other)
	w.poll()
	must.Equal(t, w.service("data").Spec.ClusterIP, s.Spec.ClusterIP, "address of the Service")
	w.mountedAt(address)
	w.leads("data", "10.0.0.1:32001")
}

func TestTerminatingServiceWithAnotherAddressIsNeverPublished(t *testing.T) {
	w := publishedWorld(t)
	address, s := w.mounted(), w.service("data")
	w.remove(s)
	s.UID, s.ResourceVersion, s.Finalizers = "", "", []string{"example.com/slow"}
	s.Spec.ClusterIP, s.Spec.ClusterIPs = "10.96.9.9", []string{"10.96.9.9"}
	w.Must(w.API.Create(t.Context(), s))
	w.Must(w.API.Delete(t.Context(), s))
	w.poll()
	w.fails("until the old Service is deleted")
	w.mountedAt(address)
}

func TestTakenAddressIsReplacedOnlyIfAllowed(t *testing.T) {
	w := sharedWorld(t)
	w.label("10.96.7.7:2049")
	w.taken("10.96.7.7")
	w.poll()
	w.reports("annotate PersistentVolumeClaim data with fairlead.io/replace-address=10.96.7.7")
	claim := w.pvc()
	for _, address := range []string{"10.96.7.8", "10.96.7.7"} {
		w.mountedAt("10.96.7.7:2049")
		claim.Annotations = map[string]string{ReplaceAnnotation: address}
		w.Must(w.API.Update(t.Context(), claim))
		w.poll()
	}
	s := w.service("data")
	w.mountedAt(s.Spec.ClusterIP + ":2049")
	must.True(t, s.Spec.ClusterIP != "10.96.7.7", "the taken address is published")
}

// ensureService adopts any Service of the name.
func TestForeignServiceIsNeitherAdoptedNorPublished(t *testing.T) {
	w := newWorld(t)
	foreign := &corev1.Service{ObjectMeta: meta("data"), Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "db"}}}
	w.Must(w.API.Create(t.Context(), foreign))
	w.share("10.0.0.1:32001")
	w.poll()
	must.Equal(t, w.service("data"), foreign)
	w.mountedAt("")
	w.leads("data", "")
	w.reports("Warning ForeignService: Ondat volume pv-1 is not published: Service data does not belong to PersistentVolumeClaim data")
	w.remove(foreign)
	w.poll()
	w.leads("data", "10.0.0.1:32001")
}

func TestWrongServerAddressMakesNoService(t *testing.T) {
	w := newWorld(t)
	for _, server := range []string{":2049", "0.0.0.0:1", "127.0.0.1:1", "nfs.example:1", "[fe80::1%eth0]:1", "10.0.0.1:0", "10.0.0.1:70000"} {
		w.share(server)
		must.Equal(t, w.writes(w.poll), nil, "writes for %s", server)
		w.reports("Warning InvalidEndpoint")
		w.mountedAt("")
		w.remove(w.pvc())
		w.restart()
	}
}

// ListSharedVolumes drops the volumes of all namespaces.
func TestVolumesOfUnlistedNamespaceStay(t *testing.T) {
	w := sharedWorld(t)
	w.AddNamespace("b-id", "b")
	w.Provision("b-id", "v-2", "pv-2", "other", "apps")
	w.claim("apps", "other", "pv-2")
	w.poll()
	w.Attach("v-2", "10.0.0.2:32002")
	for _, status := range []int{403, 500} {
		w.Server.Fail(bed.Fault{Path: "/namespaces/default-id/volumes", Status: status})
		w.restart() // only the Service still shows v-1
		for range 2 {
			w.poll()
			w.leads("data", "10.0.0.1:32001")
			w.leads("other", "10.0.0.2:32002")
			w.Recover()
			w.poll()
			w.Server.Fail(bed.Fault{Path: "/namespaces/default-id/volumes", Status: status})
		}
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
	w.r.parallel, w.r.Client, w.r.Writer.Client = 0, w.API, w.API
	w.poll()
	must.Equal(t, w.Metric("fairlead_ondat_volumes", "published"), 50, "published volumes")
	must.Equal(t, w.Metric("storageos_shared_volume_reconcile_duration_seconds"), 1, "rounds")
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
	w.mountedAt(w.service("data").Spec.ClusterIP + ":2049")
}

// toSharedVolume does not compare the PVC with the volume.
func TestForeignClaimOwnsNothing(t *testing.T) {
	for want, change := range map[string]func(*corev1.PersistentVolumeClaim){
		"Warning ClaimNotBound":    func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv-9" },
		"Warning ClaimTerminating": func(c *corev1.PersistentVolumeClaim) { c.Finalizers = []string{"kubernetes.io/pvc-protection"} },
	} {
		w := sharedWorld(t)
		claim := w.pvc()
		change(claim)
		w.Must(w.API.Update(t.Context(), claim))
		if len(claim.Finalizers) > 0 {
			w.Must(w.API.Delete(t.Context(), claim))
		}
		must.Equal(t, w.writes(w.poll), nil, "writes")
		w.mountedAt("")
		w.reports(want)
	}
}

// The Service lives until it is collected. It leads nowhere: the volume may be another PVC's next.
func TestServedVolumeOfADeletedClaimIsWithdrawn(t *testing.T) {
	w := publishedWorld(t)
	w.Must(w.API.Delete(t.Context(), w.pvc()))
	w.poll()
	w.leads("data", "")
	must.Equal(t, w.Metric("fairlead_ondat_ignored_volumes", "ClaimMissing"), 1, "volumes without a PVC")
}

func TestServiceOfATerminatingClaimIsKeptUp(t *testing.T) {
	w := publishedWorld(t)
	claim := w.pvc()
	claim.Finalizers = []string{"kubernetes.io/pvc-protection"} // a pod uses it
	w.Must(w.API.Update(t.Context(), claim))
	w.Must(w.API.Delete(t.Context(), claim))
	w.Attach("v-1", "10.0.0.2:32002")
	w.poll()
	w.leads("data", "10.0.0.2:32002")
}

func TestRecreatedClaimGetsItsOwnService(t *testing.T) {
	w := publishedWorld(t)
	old, address := w.pvc(), w.mounted()
	w.Must(w.API.Delete(t.Context(), old))
	claim := w.claim("apps", "data", "pv-1")
	w.poll()
	w.reports("Warning ForeignService: Ondat volume pv-1 is not published: Service data belongs to an earlier PersistentVolumeClaim data")
	w.collect(old.UID)
	w.poll()
	must.Equal(t, w.service("data").OwnerReferences[0].UID, claim.UID, "owner of the Service")
	w.mountedAt(address)
}

// A volume that changes between the list and the publication is published by the next poll.
func TestStaleVersionIsRefusedAndRetried(t *testing.T) {
	w := sharedWorld(t)
	w.Before(func(r *http.Request) {
		if r.Method == http.MethodPut {
			w.Change("v-1", func(v *bed.Volume) { v.Description = "changed meanwhile" })
			w.Before(nil)
		}
	})
	w.poll()
	w.mountedAt("")
	w.fails("changed it meanwhile")
	w.poll()
	w.mountedAt(w.service("data").Spec.ClusterIP + ":2049")
}

// The released manager ignores volumes without an event and labels a metric with error texts.
func TestIgnoredVolumesAreReportedOnce(t *testing.T) {
	w := sharedWorld(t)
	ignored := func(reason string, want float64) {
		t.Helper()
		must.Equal(t, w.Metric("fairlead_ondat_ignored_volumes", reason), want, "volumes ignored for %s", reason)
	}
	w.Change("v-1", func(v *bed.Volume) { delete(v.Labels, "csi.storage.k8s.io/pv/name") })
	for range 3 {
		w.poll()
	}
	w.reports("Warning MissingLabels: Ondat volume pv-1 is shared and lacks the label csi.storage.k8s.io/pv/name")
	ignored("MissingLabels", 1)
	w.Change("v-1", func(v *bed.Volume) { v.Labels["csi.storage.k8s.io/pv/name"] = "pv-1" })
	w.poll()
	ignored("MissingLabels", 0)
	w.Change("v-1", func(v *bed.Volume) { *v.NFS.ServiceEndpoint = "x" })
	w.poll()
	w.leads("data", "") // the address is not known now
	must.Equal(t, w.Metric("fairlead_ondat_volumes", "ignored"), 1, "ignored volumes")
	w.reports("Normal Published", "Warning InvalidEndpoint")
	w.Provision("default-id", "v-9", "pv-9", "none", "apps")
	w.Attach("v-9", "10.0.0.9:32009")
	w.poll()
	ignored("ClaimMissing", 1)
	w.reports() // there is no PVC to report it on
}

// Endpoints keep the address of a server that is gone, and another volume's may get it.
func TestNoSliceNamesALostServer(t *testing.T) {
	w := publishedWorld(t)
	address := w.mounted()
	w.Detach("v-1")
	w.poll()
	w.leads("data", "")
	w.mountedAt(address) // the Service and the label belong to the PVC
	must.Equal(t, w.service("data").Spec.ClusterIP+":2049", address, "address of the Service")
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
	w.leads("data", "10.0.0.1:32001")
	w.poll()
	w.leads("data", "")
	must.Equal(t, w.writes(w.poll), nil, "writes")
}

// A volume that was listed before is gone if its own namespace is listed without it.
func TestAbsentVolumeIsWithdrawnWhileAnotherNamespaceFails(t *testing.T) {
	w := publishedWorld(t)
	w.AddNamespace("b-id", "b")
	w.Server.Fail(bed.Fault{Path: "/namespaces/b-id/volumes", Status: 403})
	w.Server.Delete("v-1")
	w.poll()
	w.leads("data", "")
}

// With reclaim policy Retain, the label names an address that another Service may get.
func TestLabelIsClearedOnceDetachedAndClaimDeleted(t *testing.T) {
	w := publishedWorld(t)
	address := w.mounted()
	w.remove(w.pvc())
	w.LoseServer("v-1")
	w.poll()
	w.mountedAt(address) // the volume is still attached
	w.Detach("v-1")
	w.poll()
	w.mountedAt("")
	must.Equal(t, w.writes(w.poll), nil, "writes")
	w.claim("apps", "data", "pv-1") // the volume is used again
	w.Attach("v-1", "10.0.0.1:32001")
	w.poll()
	w.leads("data", "10.0.0.1:32001")
	w.mountedAt(w.service("data").Spec.ClusterIP + ":2049")
}

func TestStaleCacheClearsNoLabel(t *testing.T) {
	w := publishedWorld(t)
	address := w.mounted()
	w.Client.Cache = w.API.NewCache()
	w.Client.Cache.Absent(w.pvc())
	w.Detach("v-1")
	w.poll()
	w.mountedAt(address)
}

// The released manager has no metrics or health until the API answers, and its process
// ends when the token is not refreshed.
func TestProcessSurvivesAnUnreachableControlPlane(t *testing.T) {
	w := newWorld(t)
	w.Server.Fail(bed.Fault{Status: http.StatusServiceUnavailable})
	w.poll()
	for _, p := range []phase{pending, published, notServed, ignored} {
		_, found := testkit.Metric(w, w.Registry, "fairlead_ondat_volumes", string(p))
		must.Equal(t, found, true, "metric of volumes in state %s", p)
	}
	must.Equal(t, w.Metric("fairlead_ondat_last_poll_timestamp_seconds"), 0)
	w.Recover()
	w.poll()
	must.Equal(t, w.Metric("fairlead_ondat_last_poll_timestamp_seconds"), float64(testkit.Noon.Unix()))
}

// The released manager's Service has the PV's name and lacks Fairlead's label; its
// Endpoints are mirrored.
func TestServiceOfTheReleasedManagerIsTakenOver(t *testing.T) {
	w := sharedWorld(t)
	s := w.owned("pv-1")
	s.Spec = corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, SessionAffinity: corev1.ServiceAffinityNone, Ports: []corev1.ServicePort{{Name: "nfs", Port: 2049, Protocol: corev1.ProtocolTCP}},
	}
	e := &corev1.Endpoints{ObjectMeta: meta("pv-1"), Subsets: []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: "10.0.0.8"}}, Ports: []corev1.EndpointPort{{Name: "nfs", Port: 32008}}}}}
	w.Must(w.API.Create(t.Context(), s))
	w.Must(w.API.Create(t.Context(), e))
	address := s.Spec.ClusterIP + ":2049"
	w.label(address)
	w.Client.Cache = w.API.NewCache() // which holds what has Fairlead's label
	w.Client.Cache.Absent(s)
	w.Client.Cache.Absent(e)
	w.poll()
	w.leads("pv-1", "10.0.0.1:32001")
	w.mountedAt(address)
	got := w.service("pv-1")
	must.True(t, got.UID == s.UID && got.Labels["fairlead.io/nfs-service"] == "ondat_v-1" && w.service("data") == nil, "got %+v", got)
	must.True(t, get[corev1.Endpoints](w, "pv-1") == nil, "the manager's Endpoints are still there, and are mirrored")
}

// During a failover, Fairlead takes over the Service when it withdraws the address.
func TestEndpointsOfTheReleasedManagerGoWithoutAServer(t *testing.T) {
	w := sharedWorld(t)
	w.Must(w.API.Create(t.Context(), w.owned("pv-1")))
	w.Must(w.API.Create(t.Context(), &corev1.Endpoints{ObjectMeta: meta("pv-1")}))
	w.label(w.service("pv-1").Spec.ClusterIP + ":2049")
	w.LoseServer("v-1")
	w.poll()
	must.True(t, w.service("pv-1").Labels["fairlead.io/nfs-service"] == "ondat_v-1", "not taken over: %+v", w.service("pv-1"))
	must.True(t, get[corev1.Endpoints](w, "pv-1") == nil, "the manager's Endpoints are still there, and are mirrored")
}

// owned is a Service of volume v-1, as the released manager makes it.
func (w *world) owned(name string) *corev1.Service {
	w.Helper()
	s := &corev1.Service{ObjectMeta: meta(name)}
	s.Labels = map[string]string{ondat.VolumeIDLabel: "v-1"}
	s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "PersistentVolumeClaim", Name: "data", UID: w.pvc().UID}}
	return s
}

// A crash came between the takeover and the deletion of the Endpoints.
func TestEndpointsOfTheReleasedManagerGoAfterARestart(t *testing.T) {
	w := publishedWorld(t)
	w.Must(w.API.Create(t.Context(), &corev1.Endpoints{ObjectMeta: meta("data")}))
	w.restart()
	w.poll()
	must.True(t, get[corev1.Endpoints](w, "data") == nil, "the manager's Endpoints are still there, and are mirrored")
}

// The released manager created them while the volume was not served, and did not publish it.
func TestEndpointsOfAnUnpublishedVolumeGoToo(t *testing.T) {
	w := sharedWorld(t)
	w.Detach("v-1")
	w.poll()
	w.Must(w.API.Create(t.Context(), w.owned("data")))
	w.Must(w.API.Create(t.Context(), &corev1.Endpoints{ObjectMeta: meta("data")}))
	w.Client.Cache = w.API.NewCache()
	w.Client.Cache.Absent(w.service("data"))
	w.Attach("v-1", "10.0.0.1:32001")
	w.poll()
	w.leads("data", "10.0.0.1:32001")
	must.True(t, get[corev1.Endpoints](w, "data") == nil, "the manager's Endpoints are still there, and are mirrored")
}

func TestServiceWithThePublishedAddressCounts(t *testing.T) {
	w := sharedWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		w.Must(w.API.Create(t.Context(), w.owned(name)))
	}
	published := w.service("b").Spec.ClusterIP + ":2049"
	w.label(published)
	w.poll()
	w.leads("b", "10.0.0.1:32001")
	w.mountedAt(published)
}

func TestOneClaimServesOneVolume(t *testing.T) {
	w := publishedWorld(t)
	w.Provision("default-id", "v-2", "pv-1", "data", "apps") // its labels were copied
	w.Attach("v-2", "10.0.0.2:32002")
	w.poll()
	w.leads("data", "10.0.0.1:32001")
	w.reports("Warning ClaimOfTwoVolumes")
}

// Regression: the manager's Endpoints went before the Service could be taken over, and never went if the volume had no mount endpoint.
func TestEndpointsOfTheReleasedManagerGoAfterTheTakeover(t *testing.T) {
	w := sharedWorld(t)
	w.r.Config.ServiceName = ondat.ByPV
	w.Must(w.API.Create(t.Context(), w.owned("pv-1")))
	w.Must(w.API.Create(t.Context(), &corev1.Endpoints{ObjectMeta: meta("pv-1")}))
	w.Client.Cache = w.API.NewCache()
	w.Client.Cache.Absent(w.service("pv-1"))
	w.Client.Before = func(write fakeapi.Write) error {
		if _, service := write.Object.(*corev1.Service); service {
			return apierrors.NewForbidden(corev1.Resource("services"), "pv-1", errors.New("a policy"))
		}
		return nil
	}
	w.poll()
	w.reports("Warning Refused: Ondat volume pv-1 is not published: Kubernetes refuses its objects")
	must.True(t, get[corev1.Endpoints](w, "pv-1") != nil, "the Endpoints are gone, and nothing is published in their place")
	w.Client.Before = nil
	w.poll()
	must.True(t, w.service("pv-1").Labels["fairlead.io/nfs-service"] == "ondat_v-1", "not taken over: %+v", w.service("pv-1"))
	must.True(t, get[corev1.Endpoints](w, "pv-1") == nil, "the manager's Endpoints are still there, and are mirrored")
}

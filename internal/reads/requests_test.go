package reads

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/reads/caches"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

var (
	teamX = multus.Network{Namespace: "team-x", Name: "nfs"}
	teamY = multus.Network{Namespace: "team-y", Name: "nfs"}
)

func asksFor(n multus.Network) map[string]string {
	return map[string]string{rwx.VolumeNetworkAnnotation: n.String(), "other": "x"}
}

func claim(name string, annotations map[string]string) *corev1.PersistentVolumeClaim {
	c := objects.Claim(name, "")
	c.UID, c.Annotations = types.UID("uid-"+name), annotations
	return c
}

func class(name, provisioner string, n multus.Network) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: asksFor(n)}, Provisioner: provisioner}
}

func bound(pv *corev1.PersistentVolume, claim, class string, annotations map[string]string) *corev1.PersistentVolume {
	pv.Annotations, pv.Spec.StorageClassName = annotations, class
	if claim != "" {
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: claim, UID: types.UID("uid-" + claim)}
	}
	return pv
}

// requesting has a volume for each way to request a network.
func requesting() []client.Object {
	another := claim("reused", asksFor(teamX))
	another.UID = "uid-of-a-later-claim"
	pv := func(name string) *corev1.PersistentVolume {
		return persistentVolumeOf(name, name, corev1.ReadWriteMany, nil)
	}
	ebs := bound(pv("ebs"), "of-ebs", "ebs", asksFor(teamX))
	ebs.Spec.CSI.Driver = "ebs.csi.aws.com"
	return []client.Object{
		class("fast", "driver.longhorn.io", teamY), class("ebs", "ebs.csi.aws.com", teamY),
		claim("data", asksFor(teamX)), claim("plain", nil), claim("of-ebs", asksFor(teamX)), claim("pending", asksFor(teamX)), another,
		bound(pv("by-claim"), "data", "fast", nil),
		bound(pv("by-volume"), "plain", "fast", asksFor(teamX)),
		bound(pv("by-class"), "gone", "fast", nil),
		bound(pv("by-nobody"), "", "ebs", nil),
		bound(pv("released"), "reused", "", nil),
		bound(persistentVolumeOf("static-pv", "by-hand", corev1.ReadWriteMany, nil), "", "", asksFor(teamX)),
		ebs,
		// Not served over NFS: their requests do not count.
		bound(persistentVolumeOf("rwo", "rwo", corev1.ReadWriteOnce, nil), "", "fast", asksFor(teamX)),
		bound(persistentVolumeOf("migratable", "migratable", corev1.ReadWriteMany, map[string]string{longhorn.MigratableAttribute: "true"}), "", "fast", asksFor(teamX)),
	}
}

func wantedRequests() map[string]rwx.Request {
	return map[string]rwx.Request{
		"by-claim":  {Network: teamX, Source: "PersistentVolumeClaim default/data"},
		"by-volume": {Network: teamX, Source: "PersistentVolume by-volume"},
		"by-class":  {Network: teamY, Source: "StorageClass fast"},
		"by-hand":   {Network: teamX, Source: "PersistentVolume static-pv"},
	}
}

func TestRequests(t *testing.T) {
	got, err := readerOver(t, requesting()...).Requests(t.Context())
	want := Requests{
		ByVolume: wantedRequests(),
		ClassOf:  map[string]string{"by-claim": "fast", "by-volume": "fast", "by-class": "fast", "by-nobody": "ebs", "released": "", "by-hand": ""},
		Unbound: map[string]rwx.Request{
			"default/pending": {Network: teamX, Source: "PersistentVolumeClaim default/pending"},
			"default/reused":  {Network: teamX, Source: "PersistentVolumeClaim default/reused"},
		},
		Classes: map[string]multus.Network{"fast": teamY},
	}
	must.True(t, err == nil && reflect.DeepEqual(got, want), "got  %+v, %v\nwant %+v", got, err, want)
}

// Users who may annotate a claim cannot move CSI plugin pods onto a network that no administrator listed.
func TestUnlistedNetworksAreNotRequested(t *testing.T) {
	c := indexed(t, requesting()...).Build()
	names := longhorn.DefaultNames()
	r := NewReader(names, c, c)
	got, err := r.Requests(t.Context())
	must.Do(t, err)
	must.Equal(t, len(got.Classes), 0)
	must.Equal(t, len(got.ByVolume), len(wantedRequests()))
	for volume, request := range got.ByVolume {
		one, err := r.Request(t.Context(), volume)
		must.Do(t, err)
		must.Check(t, one == request && request.Network.IsZero() && strings.Contains(request.Problem, "networks.perVolume"), "%s: got %+v and %+v", volume, request, one)
	}
}

func TestRequestOfOneVolume(t *testing.T) {
	r := readerOver(t, requesting()...)
	for volume, want := range wantedRequests() {
		got, err := r.Request(t.Context(), volume)
		must.True(t, err == nil && got == want, "%s: got %+v, %v; want %+v", volume, got, err, want)
	}
	for _, volume := range []string{"by-nobody", "released", "unknown"} {
		got, err := r.Request(t.Context(), volume)
		must.True(t, err == nil && got == (rwx.Request{}), "%s: got %+v, %v", volume, got, err)
	}
}

func TestSlimCopiesKeepRequests(t *testing.T) {
	var slim []client.Object
	for _, o := range requesting() {
		transform := caches.SlimMetadata
		var object any = o
		switch o := o.(type) {
		case *corev1.PersistentVolume:
			transform = caches.SlimPersistentVolume
		case *storagev1.StorageClass:
			transform = caches.SlimStorageClass
		case *corev1.PersistentVolumeClaim:
			metadata := caches.ClaimMetadata()
			metadata.ObjectMeta = *o.ObjectMeta.DeepCopy()
			metadata.Labels = map[string]string{"app": "x"}
			object = metadata
		}
		kept, err := transform(object)
		must.Do(t, err)
		_, more := kept.(client.Object).GetAnnotations()["other"]
		must.True(t, !more && kept.(client.Object).GetLabels() == nil, "%T keeps unread fields: %+v", kept, kept)
		if metadata, ok := kept.(*metav1.PartialObjectMetadata); ok { // the fake client stores whole objects
			kept = &corev1.PersistentVolumeClaim{ObjectMeta: metadata.ObjectMeta}
		}
		kept.(client.Object).SetResourceVersion("")
		slim = append(slim, kept.(client.Object))
	}
	got, err := readerOver(t, slim...).Requests(t.Context())
	must.True(t, err == nil && reflect.DeepEqual(got.ByVolume, wantedRequests()), "got  %+v, %v\nwant %+v", got.ByVolume, err, wantedRequests())
}

func TestRequestsAreAdded(t *testing.T) {
	facts := rollout.Rollout{Volumes: []rwx.Volume{{Name: "by-class", Shared: true}, {Name: "unknown"}}}
	err := readerOver(t, requesting()...).addRequests(t.Context(), &facts)
	want := rollout.Rollout{
		Volumes:       []rwx.Volume{{Name: "by-class", Shared: true, Request: wantedRequests()["by-class"]}, {Name: "unknown"}},
		ClassNetworks: []multus.Network{teamY},
	}
	must.True(t, err == nil && reflect.DeepEqual(facts, want), "got  %+v, %v\nwant %+v", facts, err, want)
}

func TestPodsOnVolumeNetworks(t *testing.T) {
	onX, onY, common := multus.VolumeAttachment(teamX), multus.VolumeAttachment(teamY), objects.Network("a", "lhnet1")
	networks := func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{
			multus.NetworksAnnotation:      onY.String() + "," + onX.String() + "," + common.String(),
			multus.NetworkStatusAnnotation: `[{"name":"team-y/nfs","interface":"` + onY.Interface + `","ips":["10.0.0.1"]},{"name":"team-x/nfs","interface":"lhnet1","ips":["10.0.0.2"]}]`,
		}
	}
	clients, err := readerOver(t, clientPod("p", networks)).Clients(t.Context())
	must.True(t, err == nil && len(clients) == 1, "clients: got %+v, %v", clients, err)
	if c := clients[0]; c.Network != common || c.Reported || !slices.Equal(c.VolumeNetworks, []multus.Attachment{onX, onY}) || !slices.Equal(c.VolumeNetworksReported, []multus.Attachment{onY}) {
		t.Errorf("clients: got %+v", c)
	}
	onHost := func(pod *corev1.Pod) { pod.Spec.HostNetwork = true }
	clients, err = readerOver(t, clientPod("p", networks, onHost)).Clients(t.Context())
	must.True(t, err == nil && len(clients[0].VolumeNetworks) == 0, "on the host network: got %+v, %v", clients, err)
	server := objects.ServerPod("v", func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{multus.NetworksAnnotation: common.String() + "," + onX.String()}
	})
	if servers, err := readerOver(t, server).ServersOf(t.Context(), "v"); err != nil || len(servers) != 1 || servers[0].Network != onX {
		t.Errorf("the server's volume network comes first: got %+v, %v", servers, err)
	}
}

func TestRecordHasVolumeNetworks(t *testing.T) {
	onX, onY := multus.VolumeAttachment(teamX), multus.VolumeAttachment(teamY)
	object := &v1alpha1.NetworkRollout{Status: v1alpha1.NetworkRolloutStatus{
		Recorded: true,
		Clients:  v1alpha1.ClientsRollout{VolumeNetworks: []string{onY.String(), onX.String()}},
		Servers:  v1alpha1.ServersRollout{VolumeNetworks: []string{onX.String()}},
	}}
	want := rollout.Record{VolumeClients: []multus.Attachment{onX, onY}, VolumeServers: []multus.Attachment{onX}}
	must.Equal(t, testkit.Value[rollout.Record](t)(RecordOf(object)), want)
	object.Status.Servers.VolumeNetworks = []string{"x"}
	_, err := RecordOf(object)
	must.True(t, err != nil, "an unreadable network is accepted")
}

func TestServiceHasItsIdentity(t *testing.T) {
	s := objects.Headless("v", multus.VolumeAttachment(teamX), func(s *corev1.Service) {
		s.Annotations[rwx.AddressesAnnotation], s.Annotations[rwx.MACAnnotation] = "10.0.0.9/24", "nonsense"
	})
	got, err := readerOver(t, s).Service(t.Context(), "v")
	want := multus.Placement{Network: multus.VolumeAttachment(teamX), Identity: multus.Identity{Addresses: "10.0.0.9/24"}}
	must.True(t, err == nil && got.Placement(multus.Attachment{}) == want, "got %+v, %v", got, err)
}

package cluster

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/cluster/caches"
	"github.com/fairlead-io/fairlead/internal/storage"
)

var yesterday = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// fixing is a claim that fixes address 10.0.0.9, hours after yesterday noon.
func fixing(name string, hours int) *corev1.PersistentVolumeClaim {
	c := claim(name, map[string]string{storage.VolumeNetworkAnnotation: teamX.String(), storage.VolumeAddressesAnnotation: "10.0.0.9"})
	c.CreationTimestamp = metav1.NewTime(yesterday.Add(time.Duration(hours) * time.Hour))
	return c
}

func boundTo(volume, claim string) client.Object {
	return bound(persistentVolumeOf(volume, volume, corev1.ReadWriteMany, nil), claim, "", nil)
}

// holding is the Service of a volume that has address 10.0.0.9.
func holding(volume string, hours int) *corev1.Service {
	profile := storage.Longhorn()
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: profile.Namespace, Name: volume, Labels: map[string]string{profile.VolumeLabel: volume},
			CreationTimestamp: metav1.NewTime(yesterday.Add(time.Duration(hours) * time.Hour)),
			Annotations:       map[string]string{storage.NetworkAnnotation: storage.VolumeAttachment(teamX).String(), storage.AddressesAnnotation: "10.0.0.9/24"},
		},
		Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone},
	}
}

func TestOneOfTwoRequestsGetsAnAddress(t *testing.T) {
	const taken = "address 10.0.0.9 on network team-x/nfs is of "
	for name, test := range map[string]struct {
		objects       []client.Object
		winner, loser string
		unbound       bool
		problem       string
	}{
		"the older claim": {
			[]client.Object{fixing("old", 0), fixing("new", 1), boundTo("pvc-b", "new"), boundTo("pvc-a", "old")}, "pvc-a", "pvc-b", false,
			taken + "volume pvc-a (PersistentVolumeClaim default/old) already: choose another",
		},
		"the volume that has it": {
			[]client.Object{fixing("old", 0), fixing("new", 1), boundTo("pvc-a", "new"), boundTo("pvc-b", "old"), holding("pvc-a", 2)}, "pvc-a", "pvc-b", false,
			taken + "volume pvc-a (Service pvc-a) already: choose another",
		},
		"an older claim without a volume yet": {
			[]client.Object{fixing("old", 0), fixing("new", 1), boundTo("pvc-b", "new")}, "default/old", "pvc-b", true,
			taken + "PersistentVolumeClaim default/old already: choose another",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := readerOver(t, test.objects...)
			all, err := r.Requests(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			requests := all.ByVolume
			if test.unbound {
				requests = all.Unbound
			}
			if got := requests[test.winner]; got.Identity.Addresses != "10.0.0.9" || got.Problem != "" {
				t.Errorf("winner: got %+v", got)
			}
			loser := all.ByVolume[test.loser]
			if loser.Problem != loser.Asker.String()+": "+test.problem || !loser.Identity.IsZero() || loser.Network != teamX {
				t.Errorf("loser: got %+v", loser)
			}
			if want := []Contested{{loser.Asker, test.problem}}; !reflect.DeepEqual(all.Contested, want) {
				t.Errorf("contested: got %+v", all.Contested)
			}
			// One volume read on its own is what it is among all.
			if got, err := r.Request(t.Context(), test.loser); err != nil || got != loser {
				t.Errorf("alone: got %+v, %v", got, err)
			}
		})
	}
}

func TestAnAddressThatTwoServicesHaveIsOnlyInTheOlder(t *testing.T) {
	r := readerOver(t, holding("pvc-a", 1), holding("pvc-b", 0))
	for volume, want := range map[string]string{"pvc-a": "", "pvc-b": "10.0.0.9/24"} {
		service, err := r.Service(t.Context(), volume)
		if err != nil || service.Identity.Addresses != want || service.Recorded.IsZero() {
			t.Errorf("%s: got %+v, %v", volume, service, err)
		}
	}
}

func TestCachedClaimsKeepTheirAge(t *testing.T) {
	metadata := caches.ClaimMetadata()
	metadata.ObjectMeta = fixing("old", 3).ObjectMeta
	kept, err := caches.SlimMetadata(metadata)
	if err != nil || !kept.(client.Object).GetCreationTimestamp().Time.Equal(yesterday.Add(3*time.Hour)) {
		t.Fatalf("got %+v, %v", kept, err)
	}
}

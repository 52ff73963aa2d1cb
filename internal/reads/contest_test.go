package reads

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/reads/caches"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

var yesterday = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// fixing is a claim that fixes address 10.0.0.9, hours after yesterday noon.
func fixing(name string, hours int) *corev1.PersistentVolumeClaim {
	c := claim(name, map[string]string{rwx.VolumeNetworkAnnotation: teamX.String(), rwx.VolumeAddressesAnnotation: "10.0.0.9"})
	c.CreationTimestamp = metav1.NewTime(yesterday.Add(time.Duration(hours) * time.Hour))
	return c
}

func boundTo(volume, claim string) client.Object {
	return bound(persistentVolumeOf(volume, volume, corev1.ReadWriteMany, nil), claim, "", nil)
}

// holding is the Service of a volume that has address 10.0.0.9.
func holding(volume string, hours int) *corev1.Service {
	return objects.Headless(volume, multus.VolumeAttachment(teamX), func(s *corev1.Service) {
		s.CreationTimestamp = metav1.NewTime(yesterday.Add(time.Duration(hours) * time.Hour))
		s.Annotations[rwx.AddressesAnnotation] = "10.0.0.9/24"
	})
}

func TestOneOfTwoRequestsGetsAnAddress(t *testing.T) {
	const taken = "address 10.0.0.9 on network team-x/nfs is of another volume already: choose another"
	for name, test := range map[string]struct {
		objects       []client.Object
		winner, loser string
		unbound       bool
		problem       string
	}{
		"the older claim": {
			[]client.Object{fixing("old", 0), fixing("new", 1), boundTo("pvc-b", "new"), boundTo("pvc-a", "old")}, "pvc-a", "pvc-b", false, taken,
		},
		"the volume that has it": {
			[]client.Object{fixing("old", 0), fixing("new", 1), boundTo("pvc-a", "new"), boundTo("pvc-b", "old"), holding("pvc-a", 2)}, "pvc-a", "pvc-b", false, taken,
		},
		"an older claim without a volume yet": {
			[]client.Object{fixing("old", 0), fixing("new", 1), boundTo("pvc-b", "new")}, "default/old", "pvc-b", true, taken,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := readerOver(t, test.objects...)
			all, err := r.Requests(t.Context())
			must.Do(t, err)
			requests := all.ByVolume
			if test.unbound {
				requests = all.Unbound
			}
			got := requests[test.winner]
			must.True(t, got.Identity.Addresses == "10.0.0.9" && got.Problem == "", "winner: got %+v", got)
			loser := all.ByVolume[test.loser]
			must.Check(t, loser.Problem == loser.Asker.String()+": "+test.problem && loser.Identity.IsZero() && loser.Network == teamX, "loser: got %+v", loser)
			must.Equal(t, all.Contested, map[rwx.Asker]string{loser.Asker: test.problem}, "contested")
			if got, err := r.Request(t.Context(), test.loser); err != nil || got != loser {
				t.Errorf("alone: got %+v, %v", got, err)
			}
		})
	}
}

func TestAddressOfTwoServicesBelongsToTheOlder(t *testing.T) {
	r := readerOver(t, holding("pvc-a", 1), holding("pvc-b", 0))
	for volume, want := range map[string]string{"pvc-a": "", "pvc-b": "10.0.0.9/24"} {
		service, err := r.Service(t.Context(), volume)
		must.True(t, err == nil && service.Identity.Addresses == want && !service.Recorded.IsZero(), "%s: got %+v, %v", volume, service, err)
	}
}

func TestSlimClaimsKeepTheirAge(t *testing.T) {
	metadata := caches.ClaimMetadata()
	metadata.ObjectMeta = fixing("old", 3).ObjectMeta
	kept, err := caches.SlimMetadata(metadata)
	must.True(t, err == nil && kept.(client.Object).GetCreationTimestamp().Time.Equal(yesterday.Add(3*time.Hour)), "got %+v, %v", kept, err)
}

package volumes

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/testkit"
)

func TestContestedAddressIsReportedOnce(t *testing.T) {
	claim := func(name string, age time.Duration) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID("uid-of-" + name), CreationTimestamp: metav1.NewTime(noon.Add(-age)),
			Annotations: map[string]string{rwx.VolumeAddressesAnnotation: "10.0.0.9/24"},
		}}
	}
	f := newFixture(t, claim("old", 2*time.Hour), claim("new", time.Hour))
	r := &Contests{Names: names, Cached: reads.NewReader(names, f.Client, f.Client), Events: f.Events, Log: f.r.Log}
	taken := testkit.Event{
		About: "PersistentVolumeClaim/new", UID: "uid-of-new", Type: "Warning", Reason: "AddressTaken",
		Note: "address 10.0.0.9 on network kube-system/one is of another volume already: choose another",
	}
	reconcile := func(want ...testkit.Event) {
		t.Helper()
		testkit.Value[ctrl.Result](t)(r.Reconcile(t.Context(), ctrl.Request{}))
		if got := f.Events.All(); !slices.Equal(got, want) {
			t.Fatalf("got  %q\nwant %q", got, want)
		}
	}
	reconcile(taken)
	reconcile(taken)
	f.Must(f.Delete(t.Context(), claim("old", 0)))
	reconcile(taken)
	f.Must(f.Create(t.Context(), claim("old", 2*time.Hour)))
	reconcile(taken, taken)
}

func TestOnlyFixedAddressesWakeTheController(t *testing.T) {
	for key, want := range map[string]bool{
		rwx.VolumeMACAnnotation: true, rwx.VolumeAddressesAnnotation: true, rwx.AddressesAnnotation: true, rwx.MACAnnotation: true,
		rwx.VolumeNetworkAnnotation: false,
	} {
		if got := fixes(map[string]string{key: "x"}); got != want {
			t.Errorf("%s: %t", key, got)
		}
	}
}

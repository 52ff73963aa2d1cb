package volumes

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// about records what events are about, too.
type about struct{ notes *[]string }

func (r about) Eventf(o, _ runtime.Object, kind, reason, _, note string, args ...any) {
	object := o.(client.Object)
	*r.notes = append(*r.notes, kind+" "+reason+" "+object.GetName()+" "+string(object.GetUID())+": "+args[0].(string))
}

func TestAnAddressThatIsAskedForTwiceIsReportedOnce(t *testing.T) {
	claim := func(name string, age time.Duration) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID("uid-of-" + name), CreationTimestamp: metav1.NewTime(noon.Add(-age)),
			Annotations: map[string]string{storage.VolumeAddressesAnnotation: "10.0.0.9/24"},
		}}
	}
	f := newFixture(t, claim("old", 2*time.Hour), claim("new", time.Hour))
	var notes []string
	r := &Contests{Profile: profile, Cached: cluster.NewReader(profile, f.Client, f.Client), Events: about{&notes}, Log: f.r.Log}
	reconcile := func() {
		t.Helper()
		_, err := r.Reconcile(t.Context(), ctrl.Request{})
		f.must(err)
	}
	reconcile()
	reconcile()
	want := []string{"Warning AddressTaken new uid-of-new: address 10.0.0.9 on network kube-system/one is of PersistentVolumeClaim default/old already: choose another"}
	if !slices.Equal(notes, want) {
		t.Fatalf("got  %q\nwant %q", notes, want)
	}
	f.must(f.Delete(t.Context(), claim("old", 0)))
	reconcile()
	f.must(f.Create(t.Context(), claim("old", 2*time.Hour)))
	reconcile()
	if want = append(want, want[0]); !slices.Equal(notes, want) {
		t.Fatalf("after it was free for a while: got %q", notes)
	}
}

func TestOnlyFixedAddressesBringEvents(t *testing.T) {
	with := func(annotations map[string]string) client.Object {
		return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
	}
	fixed, plain := with(map[string]string{storage.VolumeMACAnnotation: "02:00:00:00:00:01"}), with(map[string]string{storage.VolumeNetworkAnnotation: "a/b"})
	p := kit.AnnotationsChanged(fixes)
	for name, test := range map[string]struct{ got, want bool }{
		"one comes":            {p.Create(event.CreateEvent{Object: fixed}), true},
		"one goes":             {p.Delete(event.DeleteEvent{Object: fixed}), true},
		"one is taken back":    {p.Update(event.UpdateEvent{ObjectOld: fixed, ObjectNew: plain}), true},
		"nothing changes":      {p.Update(event.UpdateEvent{ObjectOld: fixed, ObjectNew: fixed}), false},
		"another comes":        {p.Create(event.CreateEvent{Object: plain}), false},
		"another network":      {p.Update(event.UpdateEvent{ObjectOld: plain, ObjectNew: with(nil)}), false},
		"a Service records it": {p.Create(event.CreateEvent{Object: with(map[string]string{storage.AddressesAnnotation: "10.0.0.9"})}), true},
	} {
		if test.got != test.want {
			t.Errorf("%s: passes %v", name, test.got)
		}
	}
}

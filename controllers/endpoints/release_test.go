//lint:file-ignore SA1019 the readers of the deprecated API are served too

package endpoints

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

func shareManager() *longhorn.ShareManager {
	sm := &longhorn.ShareManager{ObjectMeta: objects.Here("v")}
	sm.UID = "uid-sm"
	return sm
}

// longhornsEndpoints is the object that createEndpoint of longhorn-manager v1.7.2 makes
// (controller/share_manager_controller.go), with addresses.
func longhornsEndpoints(addresses ...string) *corev1.Endpoints {
	e := &corev1.Endpoints{ObjectMeta: objects.Here("v")}
	e.Labels = map[string]string{"longhorn.io/managed-by": "longhorn-manager", "longhorn.io/share-manager": "v"}
	e.OwnerReferences = []metav1.OwnerReference{{APIVersion: "longhorn.io/v1beta2", Kind: "ShareManager", Name: "v", UID: "uid-sm", Controller: ptr.To(false)}}
	for _, a := range addresses {
		e.Subsets = append(e.Subsets, corev1.EndpointSubset{
			Addresses: []corev1.EndpointAddress{{IP: a}}, Ports: []corev1.EndpointPort{{Name: "nfs", Port: 2049, Protocol: corev1.ProtocolTCP}},
		})
	}
	return e
}

// longhornPublishes fills the Endpoints object if a ShareManager owns it, as longhorn-manager v1.7.2 does
// (controller/kubernetes_endpoint_controller.go).
func (f *fixture) longhornPublishes(address string) {
	f.Helper()
	if e := f.classic(); e != nil && ofShareManager(e) {
		change(f, "v", func(e *corev1.Endpoints) { e.Subsets = longhornsEndpoints(address).Subsets })
	}
}

// mirrored is a slice of Kubernetes' endpointslicemirroring controller.
func mirrored(name string, addresses ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: objects.Here(name), AddressType: discoveryv1.AddressTypeIPv4}
	s.Labels = map[string]string{discoveryv1.LabelServiceName: "v", discoveryv1.LabelManagedBy: "endpointslicemirroring-controller.k8s.io"}
	if len(addresses) > 0 {
		s.Endpoints = []discoveryv1.Endpoint{{Addresses: addresses}}
	}
	return s
}

// kubernetesMirrors does what that controller does.
func (f *fixture) kubernetesMirrors() {
	f.Helper()
	f.Must(client.IgnoreNotFound(f.Delete(context.Background(), mirrored("v-mirrored"))))
	if e := f.classic(); e != nil && e.Labels[discoveryv1.LabelSkipMirror] != "true" && len(e.Subsets) > 0 {
		f.Must(f.Create(context.Background(), mirrored("v-mirrored", published(e)...)))
	}
}

// release releases all volumes once.
func (f *fixture) release() (done bool, err error) {
	return (&Releaser{Names: names, Client: f.Client, Live: f.API, Log: f.Log}).Once(context.Background())
}

func (f *fixture) wantRelease(want bool) {
	f.Helper()
	done, err := f.release()
	must.True(f, err == nil && done == want, "done: %v, error: %v, want %v", done, err, want)
}

// releaseAll releases before and after Kubernetes mirrors. The address must be published all the time.
func (f *fixture) releaseAll(address string) {
	f.Helper()
	f.Must(f.Create(context.Background(), mirrored("v-empty"))) // has no addresses: the release waits
	another := mirrored("w-fairlead-ipv4")
	another.Labels = map[string]string{discoveryv1.LabelServiceName: "w", discoveryv1.LabelManagedBy: rwx.SliceManager}
	f.Must(f.Create(context.Background(), another)) // released at once: its Service is gone
	f.wantRelease(false)
	f.wantDNS(address)
	f.kubernetesMirrors()
	f.wantRelease(true)
	must.True(f, f.slice("ipv4") == nil && f.slice("ipv6") == nil, "a slice of Fairlead is left")
}

func (f *fixture) wantLonghornsOwner() {
	f.Helper()
	got, want := f.classic().OwnerReferences, longhornsEndpoints().OwnerReferences
	must.True(f, len(got) == 1 && got[0].String() == want[0].String() && !ptr.Deref(got[0].Controller, false), "the owner is %+v, want %+v", got, want)
}

// wantUnchanged calls a function, and compares the version of the classic object.
func (f *fixture) wantUnchanged(do func()) {
	f.Helper()
	before := f.classic().ResourceVersion
	do()
	e := f.classic()
	must.True(f, e != nil && e.ResourceVersion == before, "the classic object was written: %+v", e)
}

func TestLonghornPublishesAgainAfterRelease(t *testing.T) {
	for name, before := range map[string][]client.Object{"taken over": {longhornsEndpoints()}, "created by Fairlead": nil} {
		t.Run(name, func(t *testing.T) {
			f := serving(t, append(before, shareManager())...)
			f.longhornPublishes("10.42.0.7")
			f.wantClassic("192.168.0.3")
			f.releaseAll("192.168.0.3")
			f.wantClassic("192.168.0.3")
			f.wantLonghornsOwner()
			for _, label := range []string{discoveryv1.LabelSkipMirror, "endpoints.kubernetes.io/managed-by", corev1.IsHeadlessService} {
				_, ok := f.classic().Labels[label]
				must.Check(t, !ok, "label %s is left", label)
			}
			f.longhornPublishes("192.168.0.4") // the server moves
			f.kubernetesMirrors()
			f.wantDNS("192.168.0.4")
			f.wantUnchanged(func() { f.wantRelease(true) })
		})
	}
}

func TestReleaseDeletesUnusedObjects(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*fixture)
		more   []client.Object
	}{
		"cluster IP":      {func(f *fixture) { change(f, "v", withClusterIP) }, []client.Object{shareManager()}},
		"selector":        {func(f *fixture) { change(f, "v", withSelector) }, []client.Object{shareManager()}},
		"no Service":      {func(f *fixture) { f.remove(f.service()) }, []client.Object{shareManager()}},
		"no ShareManager": {func(*fixture) {}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, append(test.more, headless(), server("share-manager-v", "", reports("192.168.0.3", "fd00::3")))...)
			f.mustReconcile()
			test.change(f)
			f.wantRelease(true)
			f.wantPublished(false, false, false)
		})
	}
}

func TestReleaseLeavesObjectsOfOthersAlone(t *testing.T) {
	f := newFixture(t, shareManager(), headless(), longhornsEndpoints("10.42.0.7"), kubernetesSlice())
	f.wantUnchanged(func() { f.wantRelease(true) })
	must.True(t, f.hasKubernetesSlice(), "Kubernetes' own slice is gone")
	f = serving(t, shareManager())
	change(f, "v", withClusterIP)
	change(f, "v", func(e *corev1.Endpoints) {
		e.Labels = map[string]string{"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
	})
	f.wantRelease(true)
	f.wantPublished(false, false, true)
}

func TestSlicesStayUntilClassicObjectIsReleased(t *testing.T) {
	f := serving(t, shareManager())
	f.Client.Before = func(w fakeapi.Write) error {
		if w.Verb == "update" {
			return errors.New("etcd is slow")
		}
		return nil
	}
	done, err := f.release()
	must.True(t, err != nil && !done, "done: %v, error: %v", done, err)
	f.wantDNS("192.168.0.3")
}

func TestOptedOutServiceIsReleased(t *testing.T) {
	f := serving(t, shareManager(), longhornsEndpoints())
	change(f, "v", optedOut)
	must.Check(t, f.mustReconcile() != 0, "the controller does not look again")
	f.wantDNS("192.168.0.3")
	f.kubernetesMirrors()
	if after := f.mustReconcile(); after != 0 || f.slice("ipv4") != nil {
		t.Fatalf("again after %v, slice %+v", after, f.slice("ipv4"))
	}
	f.wantLonghornsOwner()
}

// A crash between two writes leaves one of the objects.
func TestHalfReleasedServiceIsReleased(t *testing.T) {
	for name, do := range map[string]func(*fixture){
		"by the controller":  func(f *fixture) { change(f, "v", optedOut); f.mustReconcile() },
		"when Fairlead goes": func(f *fixture) { f.wantRelease(true) },
	} {
		t.Run(name, func(t *testing.T) {
			f := serving(t, shareManager())
			f.remove(f.slice("ipv4"))
			do(f)
			f.wantLonghornsOwner()
			f = serving(t, shareManager())
			f.remove(f.classic())
			do(f)
			must.True(t, f.slice("ipv4") == nil, "the slice is left")
			f = newFixture(t, shareManager(), headless(), longhornsEndpoints("10.42.0.7"))
			f.wantUnchanged(func() { do(f) })
		})
	}
}

func TestClassicObjectIsWrittenBesideAStaleCache(t *testing.T) {
	f := serving(t)
	f.Client.Cache.Absent(f.classic())
	change(f, "v", func(e *corev1.Endpoints) { e.Subsets = nil })
	f.mustReconcile()
	f.wantClassic("192.168.0.3")
	f.Client.Cache.Show(f.classic())
	f.remove(f.classic())
	change(f, "share-manager-v", reports("192.168.0.4"))
	f.mustReconcile()
	f.wantClassic("192.168.0.4")
}

// Kubernetes would mirror Longhorn's object with the address of the pod, beside Fairlead's slices.
func TestSlicesModeLeavesLonghornItsUnmirroredObject(t *testing.T) {
	create := func(f *fixture) { f.Must(f.Create(context.Background(), longhornsEndpoints())) }
	for name, before := range map[string]func(*fixture){
		"from the start":   create,
		"after Fairlead's": func(f *fixture) { f.mustReconcile() },
		"after a takeover": func(f *fixture) {
			create(f)
			f.mustReconcile()
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, shareManager(), headless(), server("share-manager-v", "192.168.0.3"))
			before(f)
			f.r.Classic = false
			f.mustReconcile()
			f.longhornPublishes("10.42.0.7")
			f.kubernetesMirrors()
			f.mustReconcile()
			f.wantDNS("192.168.0.3")
			f.wantClassic("10.42.0.7")
			f.wantLonghornsOwner()
			f.releaseAll("192.168.0.3")
		})
	}
}

// Until the record is adopted, only Longhorn knows the network.
func TestWithoutRecordLonghornsObjectsAreLeftAlone(t *testing.T) {
	empty := &v1alpha1.NetworkRollout{ObjectMeta: objects.Here(longhorn.Name), Status: v1alpha1.NetworkRolloutStatus{Recorded: true}}
	for name, record := range map[string][]client.Object{"no record": nil, "record without a network": {empty}} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, append(record, shareManager(), longhornsEndpoints("192.168.0.3"), headless(unrecorded), server("share-manager-v", "192.168.0.3"))...)
			f.kubernetesMirrors()
			f.wantUnchanged(func() { f.mustReconcile() })
			f.wantDNS("192.168.0.3")
		})
	}
}

func TestWithoutRecordPublishedAddressesStay(t *testing.T) {
	f := serving(t, shareManager())
	change(f, "v", unrecorded)
	f.mustReconcile()
	f.wantDNS("192.168.0.3")
	f.wantClassic("192.168.0.3")
}

// A slice without the label is not in the cache.
func TestSliceWithoutLabelIsTakenOver(t *testing.T) {
	f := serving(t)
	change(f, "v-fairlead-ipv4", func(s *discoveryv1.EndpointSlice) {
		delete(s.Labels, discoveryv1.LabelManagedBy)
		s.Endpoints = nil
	})
	f.Client.Cache.Absent(f.slice("ipv4"))
	f.mustReconcile()
	if s := f.slice("ipv4"); s.Labels[discoveryv1.LabelManagedBy] != "fairlead.io" || !slices.Equal(published(s), []string{"192.168.0.3"}) {
		t.Fatalf("got %+v", s)
	}
}

//lint:file-ignore SA1019 the readers of the deprecated API are served too

package endpoints

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
	"github.com/fairlead-io/fairlead/internal/storage"
)

var longhornLabels = map[string]string{"longhorn.io/managed-by": "longhorn-manager", "longhorn.io/share-manager": "v"}

func shareManager() *longhorn.ShareManager {
	return &longhorn.ShareManager{ObjectMeta: metav1.ObjectMeta{Namespace: profile.Namespace, Name: "v", UID: "uid-sm"}}
}

// longhornsEndpoints is what createEndpoint of longhorn-manager v1.7.2 makes
// (controller/share_manager_controller.go), with the addresses that are there.
func longhornsEndpoints(addresses ...string) *corev1.Endpoints {
	e := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{
		Namespace: profile.Namespace, Name: "v", Labels: maps.Clone(longhornLabels),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "longhorn.io/v1beta2", Kind: "ShareManager", Name: "v", UID: "uid-sm", Controller: ptr.To(false)}},
	}}
	for _, a := range addresses {
		e.Subsets = append(e.Subsets, corev1.EndpointSubset{
			Addresses: []corev1.EndpointAddress{{IP: a}}, Ports: []corev1.EndpointPort{{Name: "nfs", Port: 2049, Protocol: corev1.ProtocolTCP}},
		})
	}
	return e
}

// longhornPublishes is what longhorn-manager v1.7.2 does when it sees the
// Endpoints object or a server pod (controller/kubernetes_endpoint_controller.go):
// it fills those that a ShareManager owns.
func (f *fixture) longhornPublishes(address string) {
	f.Helper()
	e := f.classic()
	if e == nil || !slices.ContainsFunc(e.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "ShareManager" }) {
		return
	}
	e.Subsets = longhornsEndpoints(address).Subsets
	f.must(f.Update(context.Background(), e))
}

// kubernetesMirrors is what Kubernetes' endpointslicemirroring controller does.
func (f *fixture) kubernetesMirrors() {
	f.Helper()
	key := metav1.ObjectMeta{Namespace: profile.Namespace, Name: "v-mirrored"}
	f.must(client.IgnoreNotFound(f.Delete(context.Background(), &discoveryv1.EndpointSlice{ObjectMeta: key})))
	e := f.classic()
	if e == nil || e.Labels[discoveryv1.LabelSkipMirror] == "true" || len(e.Subsets) == 0 {
		return
	}
	key.Labels = map[string]string{discoveryv1.LabelServiceName: "v", discoveryv1.LabelManagedBy: "endpointslicemirroring-controller.k8s.io"}
	f.must(f.Create(context.Background(), &discoveryv1.EndpointSlice{
		ObjectMeta: key, AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: addressesOf(e)}},
	}))
}

// inDNS are the addresses in all slices of the Service.
func (f *fixture) inDNS() []string {
	f.Helper()
	var list discoveryv1.EndpointSliceList
	f.must(f.List(context.Background(), &list, client.MatchingLabels{discoveryv1.LabelServiceName: "v"}))
	var addresses []string
	for _, s := range list.Items {
		addresses = append(addresses, published(&s)...)
	}
	slices.Sort(addresses)
	return slices.Compact(addresses)
}

func (f *fixture) releaser() *Releaser {
	return &Releaser{Profile: profile, Client: f.Client, Live: f.Client, Log: slog.New(slog.DiscardHandler)}
}

// releaseAll releases once more after Kubernetes has mirrored, and wants the
// volume to be found at each moment.
func (f *fixture) releaseAll(want ...string) {
	f.Helper()
	done, err := f.releaser().Once(context.Background())
	f.must(err)
	if got := f.inDNS(); !slices.Equal(got, want) {
		f.Fatalf("before Kubernetes has mirrored: got %v, want %v", got, want)
	}
	if len(want) > 0 && done {
		f.Fatalf("done before Kubernetes has mirrored")
	}
	f.kubernetesMirrors()
	if done, err = f.releaser().Once(context.Background()); err != nil || !done {
		f.Fatalf("done: %v, error: %v", done, err)
	}
	if f.slice("ipv4") != nil || f.slice("ipv6") != nil {
		f.Fatalf("a slice is left")
	}
}

func TestLonghornPublishesAgainAfterRelease(t *testing.T) {
	for name, before := range map[string][]client.Object{
		"Longhorn's own object was taken over": {longhornsEndpoints()},
		"Fairlead created the object":          nil,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, scheme(t), append(before, shareManager(), headless(), server("share-manager-v", reports("192.168.0.3")))...)
			f.mustReconcile()
			f.longhornPublishes("10.42.0.7")
			if got := addressesOf(f.classic()); !slices.Equal(got, []string{"192.168.0.3"}) {
				t.Fatalf("Fairlead does not own the object: %v", got)
			}
			f.releaseAll("192.168.0.3")
			got, want := f.classic(), longhornsEndpoints()
			if !slices.Equal(addressesOf(got), []string{"192.168.0.3"}) || !sameOwners(got, want) {
				t.Fatalf("got %+v", got)
			}
			for _, label := range []string{discoveryv1.LabelSkipMirror, "endpoints.kubernetes.io/managed-by", corev1.IsHeadlessService} {
				if _, ok := got.Labels[label]; ok {
					t.Errorf("label %s is left", label)
				}
			}
			// The server moves.
			f.longhornPublishes("192.168.0.4")
			f.kubernetesMirrors()
			if got := f.inDNS(); !slices.Equal(got, []string{"192.168.0.4"}) {
				t.Fatalf("after the next move: got %v", got)
			}
			// There is nothing left to do.
			f.r.Client, f.funcs.Update = f.Client, nil
			version := f.classic().ResourceVersion
			if done, err := f.releaser().Once(t.Context()); err != nil || !done || f.classic().ResourceVersion != version {
				t.Fatalf("done: %v, error: %v", done, err)
			}
		})
	}
}

func sameOwners(a, b *corev1.Endpoints) bool {
	return slices.EqualFunc(a.OwnerReferences, b.OwnerReferences, func(x, y metav1.OwnerReference) bool {
		return x.APIVersion == y.APIVersion && x.Kind == y.Kind && x.Name == y.Name && x.UID == y.UID && !ptr.Deref(x.Controller, false)
	})
}

func TestReleaseDeletesUnusedObjects(t *testing.T) {
	for name, test := range map[string]struct {
		service func(*corev1.Service)
		gone    bool
		sm      []client.Object
	}{
		"the Service has a cluster IP":   {service: func(s *corev1.Service) { s.Spec.ClusterIP = "10.43.0.1" }, sm: []client.Object{shareManager()}},
		"the Service has a selector":     {service: func(s *corev1.Service) { s.Spec.Selector = map[string]string{"a": "b"} }, sm: []client.Object{shareManager()}},
		"the Service is gone":            {gone: true, sm: []client.Object{shareManager()}},
		"the volume has no ShareManager": {},
	} {
		t.Run(name, func(t *testing.T) {
			service := headless()
			f := newFixture(t, scheme(t), append(test.sm, service, server("share-manager-v", reports("192.168.0.3", "fd00::3")))...)
			f.mustReconcile()
			if test.service != nil {
				test.service(service)
				f.must(f.Update(t.Context(), service))
			}
			if test.gone {
				f.must(f.Delete(t.Context(), service))
			}
			if done, err := f.releaser().Once(t.Context()); err != nil || !done {
				t.Fatalf("done: %v, error: %v", done, err)
			}
			if f.classic() != nil || len(f.inDNS()) > 0 {
				t.Fatalf("left: %+v, %v", f.classic(), f.inDNS())
			}
		})
	}
}

func TestReleaseLeavesObjectsOfOthersAlone(t *testing.T) {
	theirs := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: profile.Namespace, Name: "v-x7zq2", Labels: map[string]string{discoveryv1.LabelServiceName: "v"}}, AddressType: "IPv4"}
	f := newFixture(t, scheme(t), shareManager(), headless(), longhornsEndpoints("10.42.0.7"), theirs)
	before := f.classic()
	if done, err := f.releaser().Once(t.Context()); err != nil || !done {
		t.Fatalf("done: %v, error: %v", done, err)
	}
	if f.classic().ResourceVersion != before.ResourceVersion || get[discoveryv1.EndpointSlice](f, "v-x7zq2") == nil {
		t.Fatal("it is written")
	}
}

// The slices stay until Kubernetes has mirrored: a failed write must not remove them first.
func TestReleaseKeepsSlicesWhileTheClassicObjectIsNotReleased(t *testing.T) {
	f := newFixture(t, scheme(t), shareManager(), headless(), server("share-manager-v", reports("192.168.0.3")))
	f.mustReconcile()
	f.funcs.Update = func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
		return errors.New("etcd is slow")
	}
	r := f.releaser()
	r.Client = f.r.Client
	if done, err := r.Once(t.Context()); err == nil || done {
		t.Fatalf("done: %v, error: %v", done, err)
	}
	if got := f.inDNS(); !slices.Equal(got, []string{"192.168.0.3"}) {
		t.Fatalf("got %v", got)
	}
}

func TestOptedOutServiceIsReleased(t *testing.T) {
	service := headless()
	f := newFixture(t, scheme(t), shareManager(), longhornsEndpoints(), service, server("share-manager-v", reports("192.168.0.3")))
	f.mustReconcile()
	service.Annotations[storage.OptOutAnnotation] = "true"
	f.must(f.Update(t.Context(), service))
	if after := f.mustReconcile(); after == 0 || !slices.Equal(f.inDNS(), []string{"192.168.0.3"}) {
		t.Fatalf("again after %v, published %v", after, f.inDNS())
	}
	f.kubernetesMirrors()
	if after := f.mustReconcile(); after != 0 || f.slice("ipv4") != nil || !sameOwners(f.classic(), longhornsEndpoints()) {
		t.Fatalf("again after %v, left %+v", after, f.classic())
	}
}

// Longhorn's object would be mirrored with the pod's address, beside Fairlead's slices.
func TestSlicesModeLeavesLonghornItsUnmirroredObject(t *testing.T) {
	for name, before := range map[string]func(*fixture){
		"from the start":                       func(f *fixture) { f.must(f.Create(context.Background(), longhornsEndpoints())) },
		"after the object was Fairlead's":      func(f *fixture) { f.mustReconcile() },
		"after Longhorn's was taken over once": func(f *fixture) { f.must(f.Create(context.Background(), longhornsEndpoints())); f.mustReconcile() },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, scheme(t), shareManager(), headless(), server("share-manager-v", reports("192.168.0.3")))
			before(f)
			f.r.Classic = false
			f.mustReconcile()
			f.longhornPublishes("10.42.0.7")
			f.kubernetesMirrors()
			f.mustReconcile()
			if got := f.inDNS(); !slices.Equal(got, []string{"192.168.0.3"}) {
				t.Fatalf("in slices: %v", got)
			}
			if got := f.classic(); !slices.Equal(addressesOf(got), []string{"10.42.0.7"}) || !sameOwners(got, longhornsEndpoints()) {
				t.Fatalf("got %+v", got)
			}
			// And it can be released from there.
			f.releaseAll("192.168.0.3")
		})
	}
}

// Until the record is adopted, only Longhorn knows the network.
func TestWithoutRecordLonghornsObjectsAreLeftAlone(t *testing.T) {
	for name, recorded := range map[string]bool{"nothing is recorded": false, "the record has no network": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, scheme(t), shareManager(), longhornsEndpoints("192.168.0.3"),
				headless(func(s *corev1.Service) { s.Annotations = nil }), server("share-manager-v", reports("192.168.0.3")))
			f.kubernetesMirrors()
			rollout := &v1alpha1.NetworkRollout{ObjectMeta: metav1.ObjectMeta{Namespace: profile.Namespace, Name: profile.Name}}
			if recorded {
				rollout.Status.Recorded = true
				f.must(f.Create(t.Context(), rollout))
			}
			before := f.classic().ResourceVersion
			f.mustReconcile()
			if got := f.inDNS(); !slices.Equal(got, []string{"192.168.0.3"}) || f.classic().ResourceVersion != before {
				t.Fatalf("published %v, classic %+v", got, f.classic())
			}
		})
	}
}

func TestWithoutRecordPublishedAddressesStay(t *testing.T) {
	f := newFixture(t, scheme(t), shareManager(), headless(), server("share-manager-v", reports("192.168.0.3")))
	f.mustReconcile()
	service := get[corev1.Service](f, "v")
	service.Annotations = nil
	f.must(f.Update(t.Context(), service))
	f.mustReconcile()
	if got := f.inDNS(); !slices.Equal(got, []string{"192.168.0.3"}) || !slices.Equal(addressesOf(f.classic()), []string{"192.168.0.3"}) {
		t.Fatalf("published %v, classic %+v", got, f.classic())
	}
}

// A slice without the label is not in the cache.
func TestSliceWithoutLabelIsTakenOver(t *testing.T) {
	f := newFixture(t, scheme(t), headless(), server("share-manager-v", reports("192.168.0.3")))
	f.mustReconcile()
	s := f.slice("ipv4")
	delete(s.Labels, discoveryv1.LabelManagedBy)
	s.Endpoints = nil
	f.must(f.Update(t.Context(), s))
	f.funcs.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if err := c.Get(ctx, key, o, opts...); err != nil {
			return err
		}
		if s, ok := o.(*discoveryv1.EndpointSlice); ok && s.Labels[discoveryv1.LabelManagedBy] != "fairlead.io" {
			return apierrors.NewNotFound(discoveryv1.Resource("endpointslices"), key.Name)
		}
		return nil
	}
	f.mustReconcile()
	if s := f.slice("ipv4"); s.Labels[discoveryv1.LabelManagedBy] != "fairlead.io" || len(s.Endpoints) != 1 {
		t.Fatalf("got %+v", s)
	}
}

func TestReleaseLeavesEndpointsOfKubernetesAlone(t *testing.T) {
	f := newFixture(t, scheme(t), shareManager(), headless(), server("share-manager-v", reports("192.168.0.3")))
	f.mustReconcile()
	service := get[corev1.Service](f, "v")
	service.Spec.ClusterIP = "10.43.0.1"
	f.must(f.Update(t.Context(), service))
	e := f.classic()
	e.Labels = map[string]string{"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
	f.must(f.Update(t.Context(), e))
	if done, err := f.releaser().Once(t.Context()); err != nil || !done || f.classic() == nil || f.slice("ipv4") != nil {
		t.Fatalf("done: %v, error: %v, left: %+v", done, err, f.classic())
	}
}

func TestReleaseWaitsForMirroredAddresses(t *testing.T) {
	f := newFixture(t, scheme(t), shareManager(), headless(), server("share-manager-v", reports("192.168.0.3")))
	f.mustReconcile()
	f.must(f.Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: profile.Namespace, Name: "v-empty", Labels: map[string]string{
			discoveryv1.LabelServiceName: "v", discoveryv1.LabelManagedBy: "endpointslicemirroring-controller.k8s.io",
		}}, AddressType: discoveryv1.AddressTypeIPv4,
	}))
	f.releaseAll("192.168.0.3")
}

func TestSlicesModeLeavesObjectsOfOthersAlone(t *testing.T) {
	theirs := longhornsEndpoints("10.9.9.9")
	theirs.OwnerReferences = nil
	f := newFixture(t, scheme(t), shareManager(), headless(), server("share-manager-v", reports("192.168.0.3")), theirs)
	f.r.Classic = false
	before := f.classic().ResourceVersion
	f.mustReconcile()
	if f.classic().ResourceVersion != before {
		t.Fatalf("got %+v", f.classic())
	}
}

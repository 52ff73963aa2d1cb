package nfs

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs"
)

const podsService = "nfs-server-pods"

// pods are the endpoints of a Service of server pods.
func pods(endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: Namespace, Name: podsService, Labels: map[string]string{discoveryv1.LabelServiceName: podsService}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: endpoints,
		Ports: []discoveryv1.EndpointPort{{Name: ptr.To("nfs"), Port: ptr.To(int32(nfsPort))}, {Name: ptr.To("metrics"), Port: ptr.To(int32(9100))}},
	}
}

func pod(n int, ready, terminating bool) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{Addresses: []string{ServerAddress(n).String()}, Conditions: discoveryv1.EndpointConditions{
		Ready: ptr.To(ready && !terminating), Serving: ptr.To(ready), Terminating: ptr.To(terminating),
	}}
}

// Servers come from the ready endpoints of a Service, and follow them.
func TestServersFollowTheServiceOfTheirPods(t *testing.T) {
	s := emptyScene(t, "pods", 4)
	c, ctx := s.c, s.ctx
	slice := pods(pod(1, true, false), pod(2, true, false), pod(3, false, false))
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: podsService}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "nfs", Port: nfsPort}}}}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(ctx)
		for _, o := range []client.Object{service, slice} {
			if err := client.IgnoreNotFound(c.Client.Delete(ctx, o)); err != nil {
				t.Error(err)
			}
		}
	})
	s.must(c.Client.Create(ctx, service))
	s.must(c.Client.Create(ctx, slice))
	object := NewService(s.service, nfs.PerNode)
	object.Spec.ServerService = &v1alpha1.NFSServerService{Name: podsService}
	s.must(c.Client.Create(ctx, object))
	s.volume(Volume{Name: s.service, Service: s.service})
	s.follow(1, 2)
	first := s.attach(s.nodes(0, 6)...)
	s.even(s.loads(first))

	set := func(endpoints ...discoveryv1.Endpoint) {
		t.Helper()
		slice.Endpoints = endpoints
		s.must(c.Client.Update(ctx, slice))
	}
	set(pod(1, true, false), pod(2, true, false), pod(3, true, false), pod(4, true, false))
	s.follow(1, 2, 3, 4)
	now := s.attach(s.nodes(6, 12)...)
	s.same(first, now)
	s.even(s.loads(now))

	// The server of a terminating pod drains, and then leaves. Its nodes stay and are reported.
	set(pod(1, true, true), pod(2, true, false), pod(3, true, false), pod(4, true, false))
	s.wait(func(now *v1alpha1.NFSService) bool { return backendOf(now, ServerAddress(1)).Drain })
	again := s.attach(s.nodes(12, 15)...)
	if n := s.loads(again)[ServerAddress(1).String()]; n != 3 {
		t.Errorf("the server of a terminating pod has %d nodes, it had 3", n)
	}
	set(pod(2, true, false), pod(3, true, false), pod(4, true, false))
	s.follow(2, 3, 4)
	s.wait(func(now *v1alpha1.NFSService) bool {
		return condition(now, v1alpha1.NFSBalanced).Reason == "RemountNeeded"
	})
	s.same(again, s.attached(15))
	s.must(c.Client.Delete(ctx, slice))
	s.follow()
	s.notReady("NoBackends")
}

// follow waits until exactly these servers are healthy backends.
func (s *scene) follow(servers ...int) {
	s.Helper()
	s.wait(func(now *v1alpha1.NFSService) bool {
		for _, n := range servers {
			if b := backendOf(now, ServerAddress(n)); b.Health != nfs.Healthy.String() || b.Source != string(nfs.Service) {
				return false
			}
		}
		return len(now.Status.Backends) == len(servers)
	})
}

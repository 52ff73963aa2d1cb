package nfs

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs"
)

// kubeService reads a Service; nil if it does not exist.
func (s *scene) kubeService(name string) *corev1.Service {
	s.Helper()
	var service corev1.Service
	err := s.c.Client.Get(s.ctx, client.ObjectKey{Namespace: Namespace, Name: name}, &service)
	if apierrors.IsNotFound(err) {
		return nil
	}
	s.must(err)
	return &service
}

// published are the addresses in the slices of a Service.
func (s *scene) published(service string) []string {
	s.Helper()
	var list discoveryv1.EndpointSliceList
	s.must(s.c.Client.List(s.ctx, &list, client.InNamespace(Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service}))
	var all []string
	for _, slice := range list.Items {
		for _, e := range slice.Endpoints {
			all = append(all, e.Addresses...)
		}
	}
	return all
}

// returned waits until another Service of the name exists.
func (s *scene) returned(old *corev1.Service) *corev1.Service {
	s.Helper()
	var now *corev1.Service
	s.must(s.c.wait(s.ctx, func(context.Context) (bool, error) {
		now = s.kubeService(old.Name)
		return now != nil && now.UID != old.UID, nil
	}))
	return now
}

// serviceWith an address.
func (s *scene) serviceWith(address string) *corev1.Service {
	s.Helper()
	var list corev1.ServiceList
	s.must(s.c.Client.List(s.ctx, &list, client.InNamespace(Namespace)))
	for i := range list.Items {
		if list.Items[i].Spec.ClusterIP == address {
			return &list.Items[i]
		}
	}
	s.Fatalf("no Service has %s", address)
	return nil
}

func (s *scene) notReady(reason string) {
	s.Helper()
	s.wait(func(now *v1alpha1.NFSService) bool {
		c := condition(now, v1alpha1.NFSReady)
		return c.Status == metav1.ConditionFalse && c.Reason == reason
	})
}

// An address that another Service has taken is never replaced.
func TestTakenClusterIPIsReportedAndRecovered(t *testing.T) {
	for _, exposure := range []nfs.Exposure{nfs.Stable, nfs.PerNodeStable} {
		t.Run(string(exposure), func(t *testing.T) {
			name := map[nfs.Exposure]string{nfs.Stable: "taken", nfs.PerNodeStable: "taken-slot"}[exposure]
			s := newScene(t, name, exposure, 2)
			node := s.nodes(0, 1)[0]
			address := s.attach(node)[node]
			service := s.serviceWith(address)
			thief := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "thief-" + name}, Spec: corev1.ServiceSpec{
				ClusterIP: address, Ports: []corev1.ServicePort{{Port: 80}},
			}}
			t.Cleanup(func() { _ = s.c.Client.Delete(context.WithoutCancel(s.ctx), thief) })
			s.must(s.c.Paused(func() error {
				if err := s.c.Client.Delete(s.ctx, service); err != nil {
					return err
				}
				return s.c.Client.Create(s.ctx, thief)
			}))
			s.notReady("AddressTaken")
			s.awaitEvent(s.service, "AddressTaken", address)
			if now := s.kubeService(service.Name); now != nil {
				t.Errorf("Service %s was created with %s", now.Name, now.Spec.ClusterIP)
			}
			if got := s.published(service.Name); len(got) > 0 {
				t.Errorf("published: %v", got)
			}
			s.must(s.c.Client.Delete(s.ctx, thief))
			if now := s.returned(service); now.Spec.ClusterIP != address {
				t.Errorf("the Service is back with %s, not with %s", now.Spec.ClusterIP, address)
			}
			s.wait(ready)
			if got := s.published(service.Name); len(got) != 1 {
				t.Errorf("published: %v", got)
			}
		})
	}
}

// A Service of another owner stays as it is, and gets no NFS traffic.
func TestForeignServiceIsNeverAdopted(t *testing.T) {
	s := emptyScene(t, "foreign", 1)
	c, ctx := s.c, s.ctx
	foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "foreign"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "nfs", Port: nfsPort}}}}
	s.must(c.Client.Create(ctx, foreign))
	s.must(c.Client.Create(ctx, NewService("foreign", nfs.Stable, s.servers...)))
	s.notReady("ForeignService")
	s.awaitEvent("foreign", "ForeignService", "does not belong to")
	now := s.kubeService("foreign")
	if now.UID != foreign.UID || len(now.OwnerReferences) > 0 || len(now.Labels) > 0 || len(s.published("foreign")) > 0 || s.get().Status.Address != "" {
		t.Errorf("Service %+v, published %v, status %+v", now.ObjectMeta, s.published("foreign"), s.get().Status)
	}
	s.must(c.Client.Delete(ctx, foreign))
	if own := s.returned(foreign); len(own.OwnerReferences) != 1 {
		t.Errorf("the Service has no owner: %+v", own.ObjectMeta)
	}
	s.wait(ready)
}

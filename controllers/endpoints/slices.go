package endpoints

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/cluster"
	"github.com/fairlead-io/fairlead/storage"
)

var families = []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6}

// syncSlices writes one slice per IP family. A family that has no address gets
// no slice; one that had some is emptied, as Kubernetes does with its own.
func (r *Reconciler) syncSlices(ctx context.Context, service *corev1.Service, published []storage.Published) error {
	for _, family := range families {
		want := slice(service, family, published)
		have, err := r.ownSlice(ctx, want.Name)
		switch {
		case err != nil:
			return err
		case have == nil && len(want.Endpoints) == 0:
			continue
		case have == nil:
			err = r.createSlice(ctx, want)
		case sameSlice(have, want):
			continue
		default:
			err = r.updateSlice(ctx, have, want)
		}
		if err != nil {
			return fmt.Errorf("publishing %s of Service %s: %w", family, service.Name, err)
		}
		r.Log.Info("published", "service", service.Name, "family", family, "addresses", addresses(want))
	}
	return nil
}

// createSlice takes over a slice that has lost the label by which slices are cached.
func (r *Reconciler) createSlice(ctx context.Context, want *discoveryv1.EndpointSlice) error {
	err := r.Client.Create(ctx, want)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	var have discoveryv1.EndpointSlice
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(want), &have); err != nil {
		return err
	}
	return r.updateSlice(ctx, &have, want)
}

func (r *Reconciler) updateSlice(ctx context.Context, have, want *discoveryv1.EndpointSlice) error {
	updated := have.DeepCopy()
	updated.Labels = labelled(have.Labels, want.Labels)
	updated.OwnerReferences, updated.Endpoints, updated.Ports = want.OwnerReferences, want.Endpoints, want.Ports
	return r.Client.Update(ctx, updated)
}

// slice is what the Service's slice of one family should be.
func slice(service *corev1.Service, family discoveryv1.AddressType, published []storage.Published) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: service.Namespace, Name: sliceName(service.Name, family),
			OwnerReferences: owner(service),
			Labels: map[string]string{
				discoveryv1.LabelServiceName: service.Name,
				discoveryv1.LabelManagedBy:   cluster.SliceManager,
				corev1.IsHeadlessService:     "",
			},
		},
		AddressType: family,
		Endpoints:   []discoveryv1.Endpoint{},
		Ports:       []discoveryv1.EndpointPort{},
	}
	for _, p := range published {
		if p.Address.Is4() != (family == discoveryv1.AddressTypeIPv4) {
			continue
		}
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{p.Address.String()},
			// Only what is ready and stays is published, so that these are all there can be.
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true), Serving: ptr.To(true), Terminating: ptr.To(false)},
			NodeName:   ptr.To(p.Node),
			TargetRef:  target(service.Namespace, p),
		})
	}
	for _, port := range service.Spec.Ports {
		s.Ports = append(s.Ports, discoveryv1.EndpointPort{
			Name: ptr.To(port.Name), Protocol: ptr.To(port.Protocol), Port: ptr.To(portNumber(port)), AppProtocol: port.AppProtocol,
		})
	}
	return s
}

func sliceName(service string, family discoveryv1.AddressType) string {
	if family == discoveryv1.AddressTypeIPv6 {
		return service + "-fairlead-ipv6"
	}
	return service + "-fairlead-ipv4"
}

// portNumber is where the pod listens. A port that the pod names itself can't be
// looked up in what is cached of a pod; NFS servers do not do that.
func portNumber(port corev1.ServicePort) int32 {
	if n := port.TargetPort.IntVal; n != 0 {
		return n
	}
	return port.Port
}

func target(namespace string, p storage.Published) *corev1.ObjectReference {
	return &corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: p.Pod, UID: types.UID(p.UID)}
}

// owner makes the garbage collector take along what is published. It does not
// block the Service's deletion: that would need a right on its finalizers.
func owner(service *corev1.Service) []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Service", Name: service.Name, UID: service.UID, Controller: ptr.To(true),
	}}
}

func sameSlice(have, want *discoveryv1.EndpointSlice) bool {
	return maps.Equal(have.Labels, labelled(have.Labels, want.Labels)) &&
		equality.Semantic.DeepEqual(have.Endpoints, want.Endpoints) &&
		equality.Semantic.DeepEqual(have.Ports, want.Ports) &&
		equality.Semantic.DeepEqual(have.OwnerReferences, want.OwnerReferences)
}

// labelled are the labels of an object with ours: what others have put there stays.
func labelled(have, ours map[string]string) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, have)
	maps.Copy(labels, ours)
	return labels
}

func addresses(s *discoveryv1.EndpointSlice) []string {
	list := []string{}
	for _, e := range s.Endpoints {
		list = append(list, e.Addresses...)
	}
	return list
}

// ownSlice returns a slice that this controller manages; others are not cached.
func (r *Reconciler) ownSlice(ctx context.Context, name string) (*discoveryv1.EndpointSlice, error) {
	var s discoveryv1.EndpointSlice
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Profile.Namespace, Name: name}, &s); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading EndpointSlice %s: %w", name, err)
	}
	return &s, nil
}

// deleteSlices deletes the slices of the Service.
func (r *Reconciler) deleteSlices(ctx context.Context, service string) error {
	for _, family := range families {
		s, err := r.ownSlice(ctx, sliceName(service, family))
		if err != nil {
			return err
		}
		if s == nil {
			continue
		}
		if err := r.Client.Delete(ctx, s, client.Preconditions{UID: &s.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting EndpointSlice %s: %w", s.Name, err)
		}
		r.Log.Info("deleted", "endpointslice", s.Name)
	}
	return nil
}

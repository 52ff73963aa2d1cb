// Package addresses writes the addresses of Services without selector: EndpointSlices of
// Fairlead's own, which kube-proxy and DNS read.
// The publishers of shared volumes (controllers/endpoints) and of NFS services
// (controllers/nfs/frontend) decide what to write.
package addresses

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/controllers/kit"
)

// Writer reads and writes slices and Endpoints.
type Writer struct {
	Client client.Client
	// Live reads from the API server: objects without the label by which they are cached.
	Live client.Reader
}

// Families are the address families, one slice for each: addressType is immutable.
func Families() []discoveryv1.AddressType {
	return []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6}
}

// Owner has the garbage collector delete the addresses with their Service. It does not block the
// Service's deletion: that would need a right on its finalizers.
func Owner(service *corev1.Service) []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Service", Name: service.Name, UID: service.UID, Controller: ptr.To(true),
	}}
}

// Labelled adds our labels, or annotations, to those of an object.
func Labelled(have, ours map[string]string) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, have)
	maps.Copy(labels, ours)
	return labels
}

// SameSlice reports whether a slice is as wanted.
func SameSlice(have, want *discoveryv1.EndpointSlice) bool {
	return have.AddressType == want.AddressType && maps.Equal(have.Labels, Labelled(have.Labels, want.Labels)) && maps.Equal(have.Annotations, Labelled(have.Annotations, want.Annotations)) &&
		equality.Semantic.DeepEqual(have.Endpoints, want.Endpoints) &&
		equality.Semantic.DeepEqual(have.Ports, want.Ports) &&
		equality.Semantic.DeepEqual(have.OwnerReferences, want.OwnerReferences)
}

// Slice returns a slice, or nil.
func (w Writer) Slice(ctx context.Context, namespace, name string) (*discoveryv1.EndpointSlice, error) {
	var s discoveryv1.EndpointSlice
	if err := w.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &s); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading EndpointSlice %s: %w", name, err)
	}
	return &s, nil
}

// WriteSlice creates a slice, or updates the slice that was read. It takes over a slice that has
// lost the label by which slices are cached, and returns the slice as written.
func (w Writer) WriteSlice(ctx context.Context, have, want *discoveryv1.EndpointSlice) (*discoveryv1.EndpointSlice, error) {
	if have == nil {
		err := w.Client.Create(ctx, want)
		if !apierrors.IsAlreadyExists(err) {
			return want, err
		}
		have = &discoveryv1.EndpointSlice{}
		if err := w.Live.Get(ctx, client.ObjectKeyFromObject(want), have); err != nil {
			return nil, err
		}
	}
	if have.AddressType != want.AddressType {
		return w.replaceSlice(ctx, have, want)
	}
	updated := have.DeepCopy()
	updated.Labels, updated.Annotations = Labelled(have.Labels, want.Labels), Labelled(have.Annotations, want.Annotations)
	updated.OwnerReferences, updated.Endpoints, updated.Ports = want.OwnerReferences, want.Endpoints, want.Ports
	if err := w.Client.Update(ctx, updated); !apierrors.IsNotFound(err) {
		return updated, err
	}
	return createSlice(ctx, w.Client, want) // deleted by the garbage collector; the cache is stale
}

// replaceSlice replaces a slice of another address type, which is immutable.
func (w Writer) replaceSlice(ctx context.Context, have, want *discoveryv1.EndpointSlice) (*discoveryv1.EndpointSlice, error) {
	if err := kit.CanReplace(ctx, w.Client, have, asNew(want), client.Preconditions{UID: &have.UID}); client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if _, err := w.DeleteSlice(ctx, have); err != nil {
		return nil, err
	}
	return createSlice(ctx, w.Client, want)
}

func createSlice(ctx context.Context, c client.Client, want *discoveryv1.EndpointSlice) (*discoveryv1.EndpointSlice, error) {
	created := asNew(want)
	return created, c.Create(ctx, created)
}

func asNew(want *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	created := want.DeepCopy()
	created.ResourceVersion, created.UID = "", ""
	return created
}

// DeleteSlice deletes the slice that was read, and reports whether it existed.
func (w Writer) DeleteSlice(ctx context.Context, s *discoveryv1.EndpointSlice) (bool, error) {
	err := w.Client.Delete(ctx, s, client.Preconditions{UID: &s.UID})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("deleting EndpointSlice %s: %w", s.Name, err)
	}
	return err == nil, nil
}

//lint:file-ignore SA1019 this file is for the readers of the deprecated API

package addresses

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// SameClassic reports whether an Endpoints object is as wanted.
func SameClassic(have, want *corev1.Endpoints) bool {
	return maps.Equal(have.Labels, Labelled(have.Labels, want.Labels)) &&
		equality.Semantic.DeepEqual(have.Subsets, want.Subsets) &&
		equality.Semantic.DeepEqual(have.OwnerReferences, want.OwnerReferences)
}

// Classic returns the Endpoints object of a Service, or nil.
func (w Writer) Classic(ctx context.Context, namespace, name string) (*corev1.Endpoints, error) {
	var e corev1.Endpoints
	if err := w.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &e); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading Endpoints %s: %w", name, err)
	}
	return &e, nil
}

// WriteClassic creates an Endpoints object, or updates the object that was read. It takes over an
// object that is not cached, and returns the object as written.
func (w Writer) WriteClassic(ctx context.Context, have, want *corev1.Endpoints) (*corev1.Endpoints, error) {
	if have == nil {
		err := w.Client.Create(ctx, want)
		if err == nil {
			return want, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("writing Endpoints %s: %w", want.Name, err)
		}
		have = &corev1.Endpoints{}
		if err := w.Live.Get(ctx, client.ObjectKeyFromObject(want), have); err != nil {
			return nil, fmt.Errorf("reading Endpoints %s: %w", want.Name, err)
		}
	}
	updated := have.DeepCopy()
	updated.Labels = Labelled(have.Labels, want.Labels)
	updated.OwnerReferences, updated.Subsets = want.OwnerReferences, want.Subsets
	err := w.Client.Update(ctx, updated)
	if apierrors.IsNotFound(err) { // deleted by the garbage collector; the cache is stale
		updated = want.DeepCopy()
		updated.ResourceVersion, updated.UID = "", ""
		err = w.Client.Create(ctx, updated)
	}
	if err != nil {
		return nil, fmt.Errorf("writing Endpoints %s: %w", want.Name, err)
	}
	return updated, nil
}

// DeleteClassic deletes the Endpoints object that was read.
func (w Writer) DeleteClassic(ctx context.Context, e *corev1.Endpoints) error {
	if err := w.Client.Delete(ctx, e, client.Preconditions{UID: &e.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Endpoints %s: %w", e.Name, err)
	}
	return nil
}

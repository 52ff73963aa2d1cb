package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/cluster/lists"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// Components gathers the pods and templates that settings shape, sorted by kind, node and name.
// It reads each list once.
func (r *Reader) Components(ctx context.Context) ([]catalog.Component, error) {
	volumes, err := r.Volumes(ctx)
	if err != nil {
		return nil, err
	}
	return r.componentsWith(ctx, volumes, false)
}

// componentsWith is Components for callers that have read all volumes of the profile. asReported is that of FactsOptions.
func (r *Reader) componentsWith(ctx context.Context, volumes []storage.Volume, asReported bool) ([]catalog.Component, error) {
	classes, err := r.podClasses(ctx)
	if err != nil {
		return nil, err
	}
	instanceManagers := func(ctx context.Context, classes podClasses) ([]catalog.Component, error) {
		return r.instanceManagers(ctx, classes, asReported)
	}
	var components []catalog.Component
	for _, gather := range []func(context.Context, podClasses) ([]catalog.Component, error){
		r.templates, instanceManagers, r.backingImageManagers, r.shareManagers(volumes),
	} {
		more, err := gather(ctx, classes)
		if err != nil {
			return nil, err
		}
		components = append(components, more...)
	}
	slices.SortFunc(components, func(a, b catalog.Component) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Name, b.Name))
	})
	return components, nil
}

// listHere lists objects in the profile's namespace, for reading only: the cache owns them.
// A kind that is not installed has none.
func (r *Reader) listHere(ctx context.Context, list client.ObjectList, what string) error {
	if err := r.objects.List(ctx, list, client.InNamespace(r.profile.Namespace), client.UnsafeDisableDeepCopy); err != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("listing %s: %w", what, err)
	}
	return nil
}

// eachHere visits the objects that listHere would list.
func eachHere[T client.Object](ctx context.Context, r *Reader, list client.ObjectList, what string, take func(T)) error {
	if err := lists.ForEach(ctx, r.objects, list, take, client.InNamespace(r.profile.Namespace)); err != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("listing %s: %w", what, err)
	}
	return nil
}

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

// components gathers the pods and templates that settings shape, sorted by kind, node and name.
// asReported is that of FactsOptions.
func (r *Reader) components(ctx context.Context, pods storagePods, volumes []storage.Volume, nodes catalog.Nodes, asReported bool) ([]catalog.Component, error) {
	all, err := r.templates(ctx, pods, nodes)
	if err != nil {
		return nil, err
	}
	backing, err := r.backingImageManagers(ctx, pods)
	if err != nil {
		return nil, err
	}
	instance, err := r.instanceManagers(ctx, pods, asReported)
	if err != nil {
		return nil, err
	}
	all = slices.Concat(all, backing, instance, pods.shareManagers)
	// A volume that is not known may be attached.
	detached := make(map[string]bool, len(volumes))
	for _, v := range volumes {
		detached[v.Name] = !v.Attached
	}
	for i, c := range all {
		if c.Kind == catalog.ShareManager && detached[c.Uses[0]] {
			all[i].Uses = nil
		}
	}
	slices.SortFunc(all, func(a, b catalog.Component) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
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

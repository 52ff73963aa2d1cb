package kit

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CanReplace asks the API server in dry runs whether it admits the deletion of an object and the creation
// of its successor, which has the same name: admission comes before the look for the name
// (k8s.io/apiserver pkg/registry/generic/registry/store.go, create).
func CanReplace(ctx context.Context, c client.Client, old, successor client.Object, preconditions client.Preconditions) error {
	err := client.IgnoreAlreadyExists(c.Create(ctx, successor.DeepCopyObject().(client.Object), client.DryRunAll))
	if err == nil {
		err = c.Delete(ctx, old, preconditions, client.DryRunAll)
	}
	if err != nil {
		return fmt.Errorf("the replacement would be refused, so nothing is deleted: %w", err)
	}
	return nil
}

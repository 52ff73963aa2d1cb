package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Ensure creates an object if it does not exist. If it exists, Ensure reads it into
// existing, an empty object of the kind.
func Ensure(ctx context.Context, c client.Client, existing, wanted client.Object) error {
	err := c.Get(ctx, client.ObjectKeyFromObject(wanted), existing)
	if !apierrors.IsNotFound(err) {
		return err
	}
	if err := c.Create(ctx, wanted); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating %T %s: %w", wanted, wanted.GetName(), err)
	}
	return nil
}

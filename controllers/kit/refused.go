package kit

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// IsRefused reports whether the API server refused a write for what it is: by a policy, a webhook, a
// quota, validation or missing rights. The same write at another time fails alike, so other work goes on.
func IsRefused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || apierrors.IsServerTimeout(err) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusUnauthorized, http.StatusNotFound, http.StatusConflict, http.StatusTooManyRequests:
		return false
	default: // 500 is the answer if a webhook that fails closed is down
		return code >= http.StatusBadRequest && code <= http.StatusInternalServerError
	}
}

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

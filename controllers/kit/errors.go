package kit

import apierrors "k8s.io/apimachinery/pkg/api/errors"

// IsStale reports whether a write failed because its object was changed, replaced or deleted since it was read.
// The change is an event, so the controller decides again.
func IsStale(err error) bool { return apierrors.IsConflict(err) || apierrors.IsNotFound(err) }

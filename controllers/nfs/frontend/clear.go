package frontend

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/controllers/addresses"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/nfs/publish"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// clear deletes this frontend's slices: they would lead a foreign Service to an NFS server. Other publishers of Fairlead
// name slices alike.
func (w *Writer) clear(ctx context.Context, f publish.Frontend) error {
	for _, family := range addresses.Families() {
		s, err := w.addresses().Slice(ctx, f.Namespace, addresses.SliceName(f.Name, family))
		if err != nil {
			return err
		}
		if s == nil || s.Labels[publish.ServiceLabel] != f.Service || s.Labels[discoveryv1.LabelManagedBy] != storage.SliceManager {
			continue
		}
		if _, err := w.addresses().DeleteSlice(ctx, s); err != nil {
			return err
		}
		w.Log.Info("deleted", "endpointslice", s.Name, "namespace", s.Namespace)
	}
	return nil
}

// Remove deletes the Service of a frontend with what it publishes. A Service of
// another owner stays.
func (w *Writer) Remove(ctx context.Context, f publish.Frontend) error {
	if err := w.clear(ctx, f); err != nil {
		return err
	}
	var have corev1.Service
	if err := w.Live.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: f.Name}, &have); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !slices.ContainsFunc(have.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == f.Owner.UID }) {
		return nil
	}
	if err := w.Client.Delete(ctx, &have, client.Preconditions{UID: &have.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Service %s/%s: %w", f.Namespace, f.Name, err)
	}
	return nil
}

// Replace creates the Service again, since it has another address than f. It deletes nothing unless the API server admits
// the successor.
func (w *Writer) Replace(ctx context.Context, f publish.Frontend) (Result, error) {
	successor := f.Object()
	var have corev1.Service
	if err := w.Live.Get(ctx, client.ObjectKeyFromObject(successor), &have); client.IgnoreNotFound(err) != nil {
		return Result{}, err
	} else if err == nil {
		err := kit.CanReplace(ctx, w.Client, &have, successor, client.Preconditions{UID: &have.UID})
		if addressRefused(err) {
			return taken(successor, err), nil
		} else if err != nil {
			return Result{}, withCommand(err, f.Namespace)
		}
	}
	if err := w.Remove(ctx, f); err != nil {
		return Result{}, err
	}
	return w.Sync(ctx, f, nil)
}

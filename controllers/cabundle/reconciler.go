// Package cabundle writes Fairlead's self-signed CA into the webhook configurations, in clusters
// without cert-manager.
package cabundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fairlead-io/fairlead/certs"
	"github.com/fairlead-io/fairlead/controllers/kit"
)

// Reconciler copies the CA from the Secret into both webhook configurations.
type Reconciler struct {
	Secret        client.ObjectKey
	Configuration string
	Client        client.Client
	Log           *slog.Logger
}

// Reconcile writes the CA where it differs.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	var secret corev1.Secret
	if err := r.Client.Get(ctx, r.Secret, &secret); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err) // its creation is an event
	}
	ca := secret.Data[certs.CAKey]
	if len(ca) == 0 {
		return ctrl.Result{}, nil
	}
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	return ctrl.Result{}, errors.Join( // a refused configuration does not stop the other
		r.inject(ctx, &mutating, func() (changed bool) {
			for i := range mutating.Webhooks {
				changed = set(&mutating.Webhooks[i].ClientConfig, ca) || changed
			}
			return changed
		}),
		r.inject(ctx, &validating, func() (changed bool) {
			for i := range validating.Webhooks {
				changed = set(&validating.Webhooks[i].ClientConfig, ca) || changed
			}
			return changed
		}),
	)
}

// inject reads a configuration into object, and writes what change has changed.
func (r *Reconciler) inject(ctx context.Context, object client.Object, change func() (changed bool)) error {
	if err := r.Client.Get(ctx, client.ObjectKey{Name: r.Configuration}, object); err != nil {
		return client.IgnoreNotFound(err)
	}
	before := object.DeepCopyObject().(client.Object)
	if !change() {
		return nil
	}
	if err := r.Client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("injecting the CA: %w", err)
	}
	r.Log.Info("injected the CA", "kind", fmt.Sprintf("%T", object), "name", object.GetName())
	return nil
}

func set(c *admissionregistrationv1.WebhookClientConfig, ca []byte) bool {
	if bytes.Equal(c.CABundle, ca) {
		return false
	}
	c.CABundle = ca
	return true
}

// Caches limits what is watched to the Secret and the two configurations.
func (r *Reconciler) Caches(options *cache.Options) {
	named := func(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }
	options.ByObject[&corev1.Secret{}] = cache.ByObject{Namespaces: map[string]cache.Config{
		r.Secret.Namespace: {FieldSelector: named(r.Secret.Name)},
	}}
	options.ByObject[&admissionregistrationv1.MutatingWebhookConfiguration{}] = cache.ByObject{Field: named(r.Configuration)}
	options.ByObject[&admissionregistrationv1.ValidatingWebhookConfiguration{}] = cache.ByObject{Field: named(r.Configuration)}
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	one := kit.Always(reconcile.Request{NamespacedName: r.Secret})
	err := ctrl.NewControllerManagedBy(mgr).Named("cabundle").
		Watches(&corev1.Secret{}, one).
		Watches(&admissionregistrationv1.MutatingWebhookConfiguration{}, one).
		Watches(&admissionregistrationv1.ValidatingWebhookConfiguration{}, one).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the CA controller: %w", err)
	}
	return nil
}

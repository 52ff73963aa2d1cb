package cabundle

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fairlead-io/fairlead/controllers/kit"
)

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

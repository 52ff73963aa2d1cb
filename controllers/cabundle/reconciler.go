package cabundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/certs"
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
	return ctrl.Result{}, errors.Join(r.mutating(ctx, ca), r.validating(ctx, ca)) // a refused one does not stop the other
}

func (r *Reconciler) mutating(ctx context.Context, ca []byte) error {
	var c admissionregistrationv1.MutatingWebhookConfiguration
	if err := r.Client.Get(ctx, client.ObjectKey{Name: r.Configuration}, &c); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the mutating webhooks: %w", err)
	}
	before, changed := c.DeepCopy(), false
	for i := range c.Webhooks {
		changed = set(&c.Webhooks[i].ClientConfig, ca) || changed
	}
	return r.patch(ctx, changed, &c, before)
}

func (r *Reconciler) validating(ctx context.Context, ca []byte) error {
	var c admissionregistrationv1.ValidatingWebhookConfiguration
	if err := r.Client.Get(ctx, client.ObjectKey{Name: r.Configuration}, &c); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the validating webhooks: %w", err)
	}
	before, changed := c.DeepCopy(), false
	for i := range c.Webhooks {
		changed = set(&c.Webhooks[i].ClientConfig, ca) || changed
	}
	return r.patch(ctx, changed, &c, before)
}

func set(c *admissionregistrationv1.WebhookClientConfig, ca []byte) bool {
	if bytes.Equal(c.CABundle, ca) {
		return false
	}
	c.CABundle = ca
	return true
}

func (r *Reconciler) patch(ctx context.Context, changed bool, object, before client.Object) error {
	if !changed {
		return nil
	}
	if err := r.Client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("injecting the CA: %w", err)
	}
	r.Log.Info("injected the CA", "kind", fmt.Sprintf("%T", object), "name", object.GetName())
	return nil
}

package fencing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// OffLabel is on no VolumeAttachment: a binding that selects it holds nothing.
const OffLabel = "fairlead.io/fencing-is-off"

// Bindings switches the policies by which the API server holds volumes while Fairlead is down: they hold nothing where
// no profile fences or guards. The manifests lack the field that is the switch, so applying them again leaves it alone,
// and the switch stays while Fairlead is down.
type Bindings struct {
	// Names of the ValidatingAdmissionPolicyBindings.
	Names []string
	// On: a profile fences or guards.
	On     bool
	Client client.Writer
	// Live reads from the API server.
	Live client.Reader
	Log  *slog.Logger
}

// switchEvery is how often the bindings are checked: someone may have created them again.
const switchEvery = time.Minute

// Start checks the bindings until the manager stops.
func (b *Bindings) Start(ctx context.Context) error {
	_ = wait.PollUntilContextCancel(ctx, switchEvery, true, func(ctx context.Context) (bool, error) {
		err := b.Once(ctx)
		if apierrors.IsForbidden(err) && !b.On {
			return true, nil // the component is not installed
		}
		if err != nil && ctx.Err() == nil {
			b.Log.Error("could not switch the policies for attachments on or off", "on", b.On, "error", err)
		}
		return false, nil
	})
	return nil
}

// Once switches the bindings that exist. A refused binding stops no other.
func (b *Bindings) Once(ctx context.Context) error {
	var problems []error
	for _, name := range b.Names {
		if err := b.set(ctx, name); err != nil {
			problems = append(problems, fmt.Errorf("switching ValidatingAdmissionPolicyBinding %s: %w", name, err))
		}
	}
	return errors.Join(problems...)
}

func (b *Bindings) set(ctx context.Context, name string) error {
	var binding admissionregistrationv1.ValidatingAdmissionPolicyBinding
	if err := b.Live.Get(ctx, client.ObjectKey{Name: name}, &binding); err != nil || isOff(binding) != b.On {
		return client.IgnoreNotFound(err)
	}
	was := binding.DeepCopy()
	if binding.Spec.MatchResources == nil {
		binding.Spec.MatchResources = &admissionregistrationv1.MatchResources{}
	}
	binding.Spec.MatchResources.ObjectSelector = nil // selects all
	if !b.On {
		binding.Spec.MatchResources.ObjectSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: OffLabel, Operator: metav1.LabelSelectorOpExists}}}
	}
	if err := b.Client.Patch(ctx, &binding, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	b.Log.Info("switched a policy for attachments that are created while Fairlead is down", "binding", name, "on", b.On)
	return nil
}

func isOff(binding admissionregistrationv1.ValidatingAdmissionPolicyBinding) bool {
	matches := binding.Spec.MatchResources
	return matches != nil && matches.ObjectSelector != nil && slices.ContainsFunc(matches.ObjectSelector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
		return r.Key == OffLabel && r.Operator == metav1.LabelSelectorOpExists
	})
}

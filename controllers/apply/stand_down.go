package apply

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/settings"
)

// tellStoodDown says once of each component that somebody else writes it
// otherwise, and that Fairlead leaves it alone for now. It goes on guarding.
func (r *Reconciler) tellStoodDown(ctx context.Context, facts settings.Facts) error {
	down := 0
	for name, hold := range facts.Held {
		last := r.attempts[name]
		if last.count < standsDownAt || last.refused != nil || hold.Leaving {
			continue
		}
		down++
		if last.told {
			continue
		}
		r.Log.Warn("standing down", "component", name, "message", hold.Message)
		for _, want := range last.wants {
			var setting v1alpha1.Setting
			key := client.ObjectKey{Namespace: r.Profile.Namespace, Name: string(want.Setting)}
			if err := r.Client.Get(ctx, key, &setting); err != nil {
				return fmt.Errorf("reading setting %s: %w", key.Name, err)
			}
			r.Events.Eventf(&setting, nil, corev1.EventTypeWarning, "StoodDown", "Apply", "%s", clipped(hold.Message))
		}
		last.told = true
		r.attempts[name] = last
	}
	r.metrics.stoodDown.Set(float64(down))
	return nil
}

// sayOnce tells whether something has not been said of it yet.
func (r *Reconciler) sayOnce(of, what string) bool {
	if r.told == nil {
		r.told = map[string]string{}
	}
	if r.told[of] == what {
		return false
	}
	r.told[of] = what
	return true
}

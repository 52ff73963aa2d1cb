package apply

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/settings"
)

// tellStoodDown says once of each component that somebody else writes it
// otherwise, and that Fairlead leaves it alone for now. It goes on guarding.
func (r *Reconciler) tellStoodDown(facts settings.Facts) {
	down := r.attempts.stoodDown(facts.Held)
	r.metrics.stoodDown.Set(float64(len(down)))
	for name, message := range down {
		if !r.sayOnce("component "+name, message) {
			continue
		}
		r.Log.Warn("standing down", "component", name, "message", message)
		for _, setting := range r.settingsOf(name, facts) {
			r.Events.Eventf(setting, nil, corev1.EventTypeWarning, "StoodDown", "Apply", "%s", clipped(message))
		}
	}
}

// settingsOf are the settings that a component is not in line with.
func (r *Reconciler) settingsOf(component string, facts settings.Facts) []*v1alpha1.Setting {
	var found []*v1alpha1.Setting
	for _, c := range facts.Components {
		if c.Name != component {
			continue
		}
		for trait, want := range settings.Wanted(facts.Values, facts.Applied, c, facts.Nodes) {
			if built, exists := c.Built[trait]; exists && built != want.Text {
				s := &v1alpha1.Setting{}
				s.Namespace, s.Name = r.Profile.Namespace, string(want.Setting)
				found = append(found, s)
			}
		}
	}
	return found
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

package webhook

import (
	"context"

	"github.com/fairlead-io/fairlead/internal/storage"
	"github.com/fairlead-io/fairlead/validators"
	"github.com/fairlead-io/fairlead/webhook/admission"
)

// straySettings refuses Fairlead's settings outside the namespaces of all profiles. The namespaces are from the
// configuration: the selector of the installed webhook may have others.
func straySettings(profiles []Profile) admission.Rule[validators.Setting] {
	var served []storage.Profile
	for _, p := range profiles {
		served = append(served, p.Profile)
	}
	return admission.Rule[validators.Setting]{
		Kinds: settingKinds[1:],
		Decide: func(_ context.Context, r *admission.Request[validators.Setting]) (admission.Decision, error) {
			if r.OldObject != nil && r.Object.HasValueOf(*r.OldObject) {
				return admission.Allowed(validators.ReasonNotJudged), nil
			}
			return admission.FromVerdict(validators.ValidateSettingNamespace(r.Object.Metadata.Name, r.Namespace, served), r.Resource, r.Name), nil
		},
	}
}

package fencing

import (
	"log/slog"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/fence/profiles"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

// Fencing that is off everywhere holds nothing, even while Fairlead is down.
func TestBindingsHoldNothingWhileFencingIsOff(t *testing.T) {
	api := fakeapi.New(testkit.Value[*runtime.Scheme](t)(reads.NewScheme()), nil)
	var names []string
	for _, p := range registration.FencingPolicies(profiles.All()) {
		must.Do(t, api.Create(t.Context(), p.Binding.DeepCopy()))
		names = append(names, p.Binding.Name)
	}
	c := api.Client()
	switched := func(on bool, writes int) {
		t.Helper()
		before := len(c.Writes)
		must.Do(t, (&Bindings{Names: append(names, "not-installed"), On: on, Client: c, Live: c, Log: slog.New(slog.DiscardHandler)}).Once(t.Context()))
		must.Equal(t, len(c.Writes)-before, writes)
		for _, name := range names {
			must.Equal(t, selectsAttachments(t, api, name), on, "%s", name)
		}
	}
	switched(true, 0)
	switched(false, 2)
	switched(false, 0)
	switched(true, 2)
	switched(true, 0)
}

// selectsAttachments reports whether a binding selects a VolumeAttachment of Kubernetes.
func selectsAttachments(t *testing.T, from client.Reader, name string) bool {
	t.Helper()
	binding := testkit.Get[admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, from, "", name)
	matches := binding.Spec.MatchResources
	if matches == nil || matches.ObjectSelector == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(matches.ObjectSelector)
	must.Do(t, err)
	return selector.Matches(labels.Set{})
}

package registration

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/fence/profiles"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// The policy cannot see a record that the selector does not match.
func TestPolicySelectsEveryRecordThatHoldsAVolume(t *testing.T) {
	now := metav1.Now()
	binding := FencingPolicies(profiles.All())[1].Binding
	must.True(t, binding.Name == UnwatchedVolumes, "the second policy is %s", binding.Name)
	selector, err := metav1.LabelSelectorAsSelector(binding.Spec.ParamRef.Selector)
	must.Do(t, err)
	for name, test := range map[string]struct {
		spec  v1alpha1.NodeFenceSpec
		found bool
	}{
		"healthy":           {v1alpha1.NodeFenceSpec{Volumes: []v1alpha1.HeldVolume{{PersistentVolume: "pv-1"}}}, false},
		"withholds volumes": {v1alpha1.NodeFenceSpec{Withheld: []string{"pv-1"}}, true},
		"lost":              {v1alpha1.NodeFenceSpec{LostSince: &now}, true},
		"fence requested":   {v1alpha1.NodeFenceSpec{Fences: []v1alpha1.Fence{{State: v1alpha1.FenceRequested}}, Closed: true}, true},
		"being unfenced":    {v1alpha1.NodeFenceSpec{Fences: []v1alpha1.Fence{{State: v1alpha1.FenceUnfencing}}}, true},
		"over":              {v1alpha1.NodeFenceSpec{Over: true}, true},
	} {
		labels := k8slabels.Set{}
		if fence.InIncident(test.spec) {
			labels[fence.IncidentLabel] = "true"
		}
		if found := selector.Matches(labels); found != test.found {
			t.Errorf("%s: found %t", name, found)
		}
	}
}

// Two writers corrupt a volume, so the policy on Nodes fails closed. The policy on NodeFences fails open: while the API
// server can't find that kind, the policy would refuse all attachments.
func TestFailurePoliciesOfAttachmentPolicies(t *testing.T) {
	want := map[string]admissionregistrationv1.FailurePolicyType{
		UnwatchedAttachments: admissionregistrationv1.Fail,
		UnwatchedVolumes:     admissionregistrationv1.Ignore,
	}
	policies := FencingPolicies(profiles.All())
	must.Equal(t, len(policies), len(want))
	for _, p := range policies {
		must.Equal(t, *p.Policy.Spec.FailurePolicy, want[p.Policy.Name], "%s", p.Policy.Name)
	}
}

// The controller switches a policy off by the field matchResources. Manifests that had the field would switch the policy on
// again whenever they are applied.
func TestBindingsLeaveTheSwitchToTheController(t *testing.T) {
	for _, p := range FencingPolicies(profiles.All()) {
		must.True(t, p.Binding.Spec.MatchResources == nil, "%s has matchResources", p.Binding.Name)
	}
}

// With one binding deleted, the other still refuses. The runbook names both.
func TestPoliciesAdviseToDeleteBothBindings(t *testing.T) {
	for _, p := range FencingPolicies(profiles.All()) {
		says := p.Policy.Spec.Validations[0].MessageExpression
		if want := "kubectl delete validatingadmissionpolicybinding " + UnwatchedAttachments + " " + UnwatchedVolumes + "."; !strings.Contains(says, want) {
			t.Errorf("%s does not say %q: %s", p.Policy.Name, want, says)
		}
	}
}

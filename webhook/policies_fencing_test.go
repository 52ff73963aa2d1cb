package webhook

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/fence/profiles"
)

// A record that the selector does not find holds nothing, whatever the expression says.
func TestThePolicyFindsEveryRecordThatHoldsAVolume(t *testing.T) {
	now := metav1.Now()
	holding := func(v v1alpha1.HeldVolume) v1alpha1.NodeFenceStatus {
		return v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeHealthy, Reason: fence.ReasonReady, Volumes: []v1alpha1.HeldVolume{v}}
	}
	binding := FencingPolicies(profiles.All())[1].Binding
	if binding.Name != UnwatchedVolumes {
		t.Fatalf("the second policy is %s", binding.Name)
	}
	selector, err := metav1.LabelSelectorAsSelector(binding.Spec.ParamRef.Selector)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		status v1alpha1.NodeFenceStatus
		found  bool
	}{
		"healthy":                       {holding(v1alpha1.HeldVolume{}), false},
		"waits for it":                  {holding(v1alpha1.HeldVolume{Waiting: true}), false},
		"given time to end":             {holding(v1alpha1.HeldVolume{Until: &now}), true},
		"detached by force, and in use": {holding(v1alpha1.HeldVolume{Detached: true}), true},
		"shared, and in use":            {holding(v1alpha1.HeldVolume{Detached: true, Shared: true}), false},
		"tainted, and Ready":            {v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeHealthy, Reason: fence.ReasonTaintedButReady}, true},
		"lost":                          {v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeLost}, true},
		"to be fenced":                  {v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeFencing}, true},
		"fenced":                        {v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeDrained}, true},
		"let in as it was":              {v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeUnfencing}, true},
	} {
		if found := selector.Matches(k8slabels.Set{fence.PhaseLabel: fence.PhaseLabelValue(test.status)}); found != test.found {
			t.Errorf("%s: found %t", name, found)
		}
	}
	if selector.Matches(k8slabels.Set{}) {
		t.Error("what Fairlead has not labelled is no record of its own")
	}
}

// One binding alone would leave the other's refusal, and the runbook names both.
func TestThePoliciesAdviseToDeleteBothBindings(t *testing.T) {
	for _, p := range FencingPolicies(profiles.All()) {
		says := p.Policy.Spec.Validations[0].MessageExpression
		if want := "kubectl delete validatingadmissionpolicybinding " + UnwatchedAttachments + " " + UnwatchedVolumes + "."; !strings.Contains(says, want) {
			t.Errorf("%s does not say %q: %s", p.Policy.Name, want, says)
		}
	}
}

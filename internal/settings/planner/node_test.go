package planner

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

func TestTaintRefusesPodsThatDoNotTolerateIt(t *testing.T) {
	taint := corev1.Taint{Key: "tier", Value: "5", Effect: corev1.TaintEffectNoSchedule}
	for name, test := range map[string]struct {
		toleration corev1.Toleration
		accepted   bool
	}{
		"no operator":    {corev1.Toleration{Key: "tier", Value: "5"}, true},
		"another value":  {corev1.Toleration{Key: "tier", Operator: corev1.TolerationOpEqual, Value: "6"}, false},
		"another key":    {corev1.Toleration{Key: "other", Operator: corev1.TolerationOpExists}, false},
		"another effect": {corev1.Toleration{Key: "tier", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}, false},
		"every taint":    {corev1.Toleration{Operator: corev1.TolerationOpExists}, true},
		"above 4":        {corev1.Toleration{Key: "tier", Operator: corev1.TolerationOpGt, Value: "4"}, true},
		"above 5":        {corev1.Toleration{Key: "tier", Operator: corev1.TolerationOpGt, Value: "5"}, false},
		"below 10":       {corev1.Toleration{Key: "tier", Operator: corev1.TolerationOpLt, Value: "10"}, true},
		"below 5":        {corev1.Toleration{Key: "tier", Operator: corev1.TolerationOpLt, Value: "5"}, false},
		"not a number":   {corev1.Toleration{Key: "tier", Operator: corev1.TolerationOpLt, Value: "five"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			node := catalog.Node{Taints: []corev1.Taint{taint}}
			if r := refusalOf(node, request{tolerations: []corev1.Toleration{test.toleration}}); (r == nil) != test.accepted {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestAdviceOnMissingLabels(t *testing.T) {
	for selector, want := range map[string]string{
		"disktype:ssd":                  `the node lacks the labels "disktype:ssd": label the node, or change system-managed-components-node-selector`,
		"kubernetes.io/hostname:node-2": `the node lacks the labels "kubernetes.io/hostname:node-2": change system-managed-components-node-selector`,
	} {
		t.Run(selector, func(t *testing.T) {
			node := catalog.Node{Labels: map[string]string{corev1.LabelHostname: "node-1"}}
			if r := refusalOf(node, request{selector: selector}); r == nil || r.why != want {
				t.Errorf("got %+v", r)
			}
		})
	}
}

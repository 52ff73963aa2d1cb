package fencingreads

import (
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
)

// A node may have several taints with one key and different effects, from an operator and from Fairlead.
func TestOwnerOfOutOfServiceTaint(t *testing.T) {
	own := corev1.Taint{Key: fence.OutOfServiceTaint, Value: fence.OwnTaintValue, Effect: corev1.TaintEffectNoExecute}
	operators := corev1.Taint{Key: fence.OutOfServiceTaint, Value: "nodeshutdown", Effect: corev1.TaintEffectNoSchedule}
	namesake := corev1.Taint{Key: "example.com/other", Value: fence.OwnTaintValue}
	for name, test := range map[string]struct {
		taints                    []corev1.Taint
		outOfService, own, others bool
	}{
		"none":            {nil, false, false, false},
		"Fairlead's":      {[]corev1.Taint{namesake, own, namesake}, true, true, false},
		"an operator's":   {[]corev1.Taint{operators}, true, false, true},
		"both":            {[]corev1.Taint{own, operators}, true, true, true},
		"both, otherwise": {[]corev1.Taint{operators, own}, true, true, true},
		"Fairlead's two":  {[]corev1.Taint{own, own}, true, true, false},
		"another key":     {[]corev1.Taint{namesake}, false, false, false},
	} {
		node := FenceNode(&corev1.Node{Spec: corev1.NodeSpec{Taints: test.taints}})
		if node.OutOfService != test.outOfService || node.OwnTaint != test.own || node.OthersTaint != test.others {
			t.Errorf("%s: out of service %t, Fairlead's %t, others' %t", name, node.OutOfService, node.OwnTaint, node.OthersTaint)
		}
	}
}

// A driver may quote the whole output of a command. Records stay small.
func TestDriverMessageIsCut(t *testing.T) {
	said := strings.Repeat("ä", 100_000)
	got := FenceObject(&csiaddons.NetworkFence{Status: csiaddons.NetworkFenceStatus{Result: "Failed", Message: said}}).Message
	if len(got) > maxMessage || len(got) < maxMessage-8 || !utf8.ValidString(got) || !strings.HasSuffix(got, "ä...") {
		t.Fatalf("got %d bytes: %q", len(got), got)
	}
}

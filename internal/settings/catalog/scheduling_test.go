package catalog

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestTolerationValues(t *testing.T) {
	const form = `must be <key>[=<value>]:<effect>, separated by ";", like dedicated=storage:NoSchedule;maintenance:NoExecute, or "" for none`
	long := strings.Repeat("b", 64)
	checkValues(t, TaintToleration, form, accepted{
		"": "", "  \n": "", ":": ":", ":NoExecute": ":NoExecute", "a:NoSchedule": "a:NoSchedule", "a:": "a:",
		"a=b:PreferNoSchedule": "a=b:PreferNoSchedule", "a=:NoSchedule": "a=:NoSchedule", "example.com/a=b:NoSchedule": "example.com/a=b:NoSchedule",
		"b:NoSchedule;a=2:NoExecute;a=1:NoExecute": "a=1:NoExecute;a=2:NoExecute;b:NoSchedule",
		"a:NoSchedule;a:NoExecute":                 "a:NoExecute;a:NoSchedule",
		" a = b : NoSchedule ; c :NoExecute ":      "a=b:NoSchedule;c:NoExecute",
	}, refused{
		"a=b=c:NoSchedule": `"a=b=c:NoSchedule" must have at most one "="`, // broke pods later
		"=b:NoSchedule":    `"=b:NoSchedule" has a value but no key`,
		"=:NoSchedule":     `"=:NoSchedule" has a value but no key`,
		"a:NoSchedule;b:NoSchedule; a:NoSchedule": `"a:NoSchedule" occurs twice`,
		"a:NoSchedule;":              `remove the ";" at the end`,
		";":                          "item 1 is empty",
		"a:NoSchedule;;b:NoSchedule": "item 2 is empty",
		"a=b":                        `"a=b" must have one ":"`,
		"a:b:NoSchedule":             `"a:b:NoSchedule" must have one ":"`,
		"a:NoSchedule,b:NoSchedule":  `"a:NoSchedule,b:NoSchedule" must have one ":"`,
		"a:noschedule":               `effect "noschedule" must be NoSchedule, PreferNoSchedule, NoExecute or nothing`,
		`[{"key":"a"}]`:              `effect "\"a\"}]" must be NoSchedule, PreferNoSchedule, NoExecute or nothing`,
		"a/b/c:NoSchedule":           `key "a/b/c" is not a valid label key`,
		"a\tb:NoSchedule":            `key "a\tb" is not a valid label key`,
		"a=b/c:NoSchedule":           `value "b/c" is not a valid label value`,
		"a=" + long + ":":            `value "` + long + `" is not a valid label value`,
	})
}

func TestParseTolerations(t *testing.T) {
	got, err := ParseTolerations("a:NoSchedule;b=c:;:NoExecute")
	want := []corev1.Toleration{
		{Key: "a", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
		{Key: "b", Operator: corev1.TolerationOpEqual, Value: "c"},
		{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	}
	must.True(t, err == nil && equality.Semantic.DeepEqual(got, want), "got %+v, %v", got, err)
}

// Tolerations that Kubernetes adds to pods must differ from those of the setting.
func TestTolerationsOfPods(t *testing.T) {
	for want, tolerations := range map[string][]corev1.Toleration{
		"":                   nil,
		"a=b:NoSchedule":     {{Key: "a", Value: "b", Effect: "NoSchedule"}}, // the API's default operator
		"a:":                 {{Key: "a", Operator: "Exists"}, {Key: "a", Operator: "Exists"}},
		"a:;b:":              {{Key: "b", Operator: "Exists"}, {Key: "a", Operator: "Exists"}},
		"a:NoExecute for 3s": {{Key: "a", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: ptr.To(int64(3))}},
		"a Gt 5:NoSchedule":  {{Key: "a", Operator: "Gt", Value: "5", Effect: "NoSchedule"}},
	} {
		must.Equal(t, TolerationsTrait(tolerations), want)
	}
}

func TestNodeSelectorValues(t *testing.T) {
	checkValues(t, SystemManagedNodeSelector, `must be <key>:<value>, separated by ";", like disktype:ssd;zone:a, or "" for none`, accepted{
		"": "", " ": "", "disktype:ssd": "disktype:ssd", "storage:": "storage:", "node-role.kubernetes.io/worker:true": "node-role.kubernetes.io/worker:true",
		"zone:a;disktype:ssd": "disktype:ssd;zone:a", " zone : a ;\tdisktype: ssd ": "disktype:ssd;zone:a",
	}, refused{
		"zone:a;zone:b":    `key "zone" occurs twice`,
		"zone:a; zone : a": `key "zone" occurs twice`,
		"zone=a":           `"zone=a" must have one ":"`,
		"a:b:c":            `"a:b:c" must have one ":"`,
		":a":               `key "" is not a valid label key`,
		"my zone:a":        `key "my zone" is not a valid label key`,
		"zone:a b":         `value "a b" is not a valid label value`,
		"zone:a;":          `remove the ";" at the end`,
		"zone:a; ;b:c":     "item 2 is empty",
	})
}

func TestPriorityClassValues(t *testing.T) {
	checkValues(t, PriorityClass, `must be the name of a PriorityClass, like longhorn-critical, or "" for none`, accepted{
		"": "", "longhorn-critical": "longhorn-critical", "a.b": "a.b", " longhorn-critical\n": "longhorn-critical",
	}, refused{"longhorn critical": "", "Critical": "", "a_b": "", strings.Repeat("a", 254): ""})
}

func TestSchedulingIsAskedOfEveryComponent(t *testing.T) {
	for name, test := range map[Name]struct{ value, want string }{
		TaintToleration:           {"b:NoSchedule; a=1:", "a=1:;b:NoSchedule"},
		SystemManagedNodeSelector: {"b:2;a:1", "a:1;b:2"},
		PriorityClass:             {" high ", "high"},
	} {
		tests := []wanted{{test.value, Component{Kind: "Job"}, nothing}}
		for _, c := range everyKind {
			tests = append(tests, wanted{test.value, c, test.want}, wanted{"", c, ""}, wanted{"not well;formed", c, nothing})
		}
		checkWants(t, name, nil, tests)
	}
}

// Kubernetes accepts a pod with every accepted toleration. Values are joined from pieces, since random text is hardly ever accepted.
func TestAcceptedTolerationsMakeValidPods(t *testing.T) {
	piece := rapid.SampledFrom([]string{"", "a", "example.com/a", "A_b.c", "a/", "-a", "=", "=b", "==", "=b/c", ":", ":", "NoSchedule", "NoExecute", "nosuch", ";", " ", strings.Repeat("x", 64)})
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		value := strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "value"), "")
		list, err := ParseTolerations(value)
		if err != nil {
			return
		}
		accepted++
		for _, toleration := range list {
			for _, problem := range refusedByKubernetes(toleration) {
				t.Errorf("%q: %v", value, problem)
			}
		}
		if again, err := ParseTolerations(TolerationsTrait(list)); err != nil || TolerationsTrait(again) != TolerationsTrait(list) {
			t.Errorf("%q: written and parsed again: %+v, %v", value, again, err)
		}
	})
	must.True(t, accepted != 0, "nothing was accepted")
}

// refusedByKubernetes copies the rules of ValidateTolerations in k8s.io/kubernetes.
func refusedByKubernetes(t corev1.Toleration) field.ErrorList {
	path := field.NewPath("tolerations")
	var problems field.ErrorList
	if t.Key != "" {
		problems = append(problems, metav1validation.ValidateLabelName(t.Key, path)...)
	} else if t.Operator != corev1.TolerationOpExists {
		problems = append(problems, field.Invalid(path, t.Operator, "must be Exists without a key"))
	}
	switch t.Operator {
	case corev1.TolerationOpEqual:
		for _, problem := range validation.IsValidLabelValue(t.Value) {
			problems = append(problems, field.Invalid(path, t.Value, problem))
		}
	case corev1.TolerationOpExists:
		if t.Value != "" {
			problems = append(problems, field.Invalid(path, t.Value, "must be empty"))
		}
	default:
		problems = append(problems, field.Invalid(path, t.Operator, "must be Equal or Exists"))
	}
	switch t.Effect {
	case "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		problems = append(problems, field.Invalid(path, t.Effect, "unknown"))
	}
	return problems
}

func TestAcceptedNodeSelectorsMakeValidPods(t *testing.T) {
	piece := rapid.SampledFrom([]string{"a", "example.com/a", "b", "-", "a/", ":", ":", ":", ";", " ", "\t", strings.Repeat("x", 64)})
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		value := strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "value"), "")
		selector, err := ParseNodeSelector(value)
		if err != nil {
			return
		}
		accepted++
		for _, problem := range metav1validation.ValidateLabels(selector, field.NewPath("nodeSelector")) {
			t.Errorf("%q: %v", value, problem)
		}
	})
	must.True(t, accepted != 0, "nothing was accepted")
}

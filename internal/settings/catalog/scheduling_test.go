package catalog

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"
)

func TestSpellingsOfTolerations(t *testing.T) {
	const form = `must be <key>[=<value>]:<effect>, separated by ";", like dedicated=storage:NoSchedule;maintenance:NoExecute, or "" for none`
	checkSpellings(t, TaintToleration, map[string]spelled{
		"none":                        {value: ""},
		"blank":                       {value: "  \n"},
		"all taints":                  {value: ":", normal: ":"},
		"all taints of an effect":     {value: ":NoExecute", normal: ":NoExecute"},
		"a key":                       {value: "a:NoSchedule", normal: "a:NoSchedule"},
		"a key and all effects":       {value: "a:", normal: "a:"},
		"a value":                     {value: "a=b:PreferNoSchedule", normal: "a=b:PreferNoSchedule"},
		"an empty value is a value":   {value: "a=:NoSchedule", normal: "a=:NoSchedule"},
		"a key with a domain":         {value: "example.com/a=b:NoSchedule", normal: "example.com/a=b:NoSchedule"},
		"a key of Kubernetes":         {value: "node.kubernetes.io/memory-pressure:NoSchedule", normal: "node.kubernetes.io/memory-pressure:NoSchedule"},
		"several, in order":           {value: "b:NoSchedule;a=2:NoExecute;a=1:NoExecute", normal: "a=1:NoExecute;a=2:NoExecute;b:NoSchedule"},
		"one key, several effects":    {value: "a:NoSchedule;a:NoExecute", normal: "a:NoExecute;a:NoSchedule"},
		"spaces wherever, as there":   {value: " a = b : NoSchedule ; c :NoExecute ", normal: "a=b:NoSchedule;c:NoExecute"},
		"two =: broke pods later":     {value: "a=b=c:NoSchedule", problem: form + `: "a=b=c:NoSchedule" must have at most one "="`},
		"a value without key":         {value: "=b:NoSchedule", problem: form + `: "=b:NoSchedule" has a value but no key`},
		"an empty value without key":  {value: "=:NoSchedule", problem: form + `: "=:NoSchedule" has a value but no key`},
		"twice the same":              {value: "a:NoSchedule;b:NoSchedule; a:NoSchedule", problem: form + `: "a:NoSchedule" is there twice`},
		"a semicolon at the end":      {value: "a:NoSchedule;", problem: form + `: leave out the ";" at the end`},
		"nothing but a semicolon":     {value: ";", problem: form + ": item 1 is empty"},
		"nothing between":             {value: "a:NoSchedule;;b:NoSchedule", problem: form + ": item 2 is empty"},
		"no effect and no colon":      {value: "a=b", problem: form + `: "a=b" must have one ":"`},
		"two colons":                  {value: "a:b:NoSchedule", problem: form + `: "a:b:NoSchedule" must have one ":"`},
		"an effect in lower case":     {value: "a:noschedule", problem: form + `: effect "noschedule" must be NoSchedule, PreferNoSchedule, NoExecute or nothing`},
		"a key that is no label's":    {value: "a/b/c:NoSchedule", problem: form + `: key "a/b/c" is not the key of a label`},
		"a key with a tab":            {value: "a\tb:NoSchedule", problem: form + `: key "a\tb" is not the key of a label`},
		"a value that is no label's":  {value: "a=b/c:NoSchedule", problem: form + `: value "b/c" is not the value of a label`},
		"a value that is too long":    {value: "a=" + strings.Repeat("b", 64) + ":", problem: form + `: value "` + strings.Repeat("b", 64) + `" is not the value of a label`},
		"separated by a comma":        {value: "a:NoSchedule,b:NoSchedule", problem: form + `: "a:NoSchedule,b:NoSchedule" must have one ":"`},
		"the JSON form of Kubernetes": {value: `[{"key":"a"}]`, problem: form + `: effect "\"a\"}]" must be NoSchedule, PreferNoSchedule, NoExecute or nothing`},
	})
}

func TestParseTolerations(t *testing.T) {
	got, err := ParseTolerations("a:NoSchedule;b=c:;:NoExecute")
	want := []corev1.Toleration{
		{Key: "a", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
		{Key: "b", Operator: corev1.TolerationOpEqual, Value: "c"},
		{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	}
	if err != nil || !equality.Semantic.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v", got, err)
	}
}

// What Kubernetes adds to pods by itself must not look like what was asked for.
func TestTolerationsOfPods(t *testing.T) {
	seconds := int64(300)
	for name, test := range map[string]struct {
		pod  []corev1.Toleration
		want string
	}{
		"none":                        {nil, ""},
		"the API's default operator":  {[]corev1.Toleration{{Key: "a", Value: "b", Effect: "NoSchedule"}}, "a=b:NoSchedule"},
		"one that is there twice":     {[]corev1.Toleration{{Key: "a", Operator: "Exists"}, {Key: "a", Operator: "Exists"}}, "a:"},
		"in another order":            {[]corev1.Toleration{{Key: "b", Operator: "Exists"}, {Key: "a", Operator: "Exists"}}, "a:;b:"},
		"for some time only":          {[]corev1.Toleration{{Key: "a", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: &seconds}}, "a:NoExecute for 300s"},
		"an operator of no setting's": {[]corev1.Toleration{{Key: "a", Operator: "Gt", Value: "5", Effect: "NoSchedule"}}, "a Gt 5:NoSchedule"},
	} {
		if got := TolerationsTrait(test.pod); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestSpellingsOfNodeSelectors(t *testing.T) {
	const form = `must be <key>:<value>, separated by ";", like disktype:ssd;zone:a, or "" for none`
	checkSpellings(t, SystemManagedNodeSelector, map[string]spelled{
		"none":                       {value: ""},
		"blank":                      {value: " "},
		"one":                        {value: "disktype:ssd", normal: "disktype:ssd"},
		"several, in order":          {value: "zone:a;disktype:ssd", normal: "disktype:ssd;zone:a"},
		"space around parts":         {value: " zone : a ;\tdisktype: ssd ", normal: "disktype:ssd;zone:a"},
		"an empty value":             {value: "storage:", normal: "storage:"},
		"a key with a domain":        {value: "node-role.kubernetes.io/worker:true", normal: "node-role.kubernetes.io/worker:true"},
		"one key twice":              {value: "zone:a;zone:b", problem: form + `: key "zone" is there twice`},
		"one key twice, spaced":      {value: "zone:a; zone : a", problem: form + `: key "zone" is there twice`},
		"an equals sign":             {value: "zone=a", problem: form + `: "zone=a" must have one ":"`},
		"two colons":                 {value: "a:b:c", problem: form + `: "a:b:c" must have one ":"`},
		"no key":                     {value: ":a", problem: form + `: key "" is not the key of a label`},
		"a key with a space":         {value: "my zone:a", problem: form + `: key "my zone" is not the key of a label`},
		"a value with a space":       {value: "zone:a b", problem: form + `: value "a b" is not the value of a label`},
		"a semicolon at the end":     {value: "zone:a;", problem: form + `: leave out the ";" at the end`},
		"nothing between semicolons": {value: "zone:a; ;b:c", problem: form + ": item 2 is empty"},
	})
}

func TestSpellingsOfPriorityClasses(t *testing.T) {
	const form = `must be the name of a PriorityClass, like longhorn-critical, or "" for none`
	checkSpellings(t, PriorityClass, map[string]spelled{
		"none":           {value: ""},
		"a name":         {value: "longhorn-critical", normal: "longhorn-critical"},
		"with dots":      {value: "a.b", normal: "a.b"},
		"space around":   {value: " longhorn-critical\n", normal: "longhorn-critical"},
		"space inside":   {value: "longhorn critical", problem: form},
		"in upper case":  {value: "Critical", problem: form},
		"of another age": {value: "a_b", problem: form},
		"too long":       {value: strings.Repeat("a", 254), problem: form},
	})
}

func TestSchedulingIsAskedOfEveryComponent(t *testing.T) {
	for name, value := range map[Name][2]string{
		TaintToleration:           {"b:NoSchedule; a=1:", "a=1:;b:NoSchedule"},
		SystemManagedNodeSelector: {"b:2;a:1", "a:1;b:2"},
		PriorityClass:             {" high ", "high"},
	} {
		d, _ := Lookup(string(name))
		for _, c := range everyKind {
			if got, ok := d.Wants(value[0], c, nil); got != value[1] || !ok {
				t.Errorf("%s of %s: got %q, %t", name, c.Name, got, ok)
			}
			if got, ok := d.Wants("", c, nil); got != "" || !ok {
				t.Errorf("%s of %s, unset: got %q, %t", name, c.Name, got, ok)
			}
			if got, ok := d.Wants("not well;formed", c, nil); ok {
				t.Errorf("%s of %s, not well formed: got %q", name, c.Name, got)
			}
		}
		if _, ok := d.Wants(value[0], Component{Kind: "Job"}, nil); ok {
			t.Errorf("%s is asked of what it is not about", name)
		}
	}
}

// Whatever is accepted, Kubernetes takes in a pod. Pieces that nearly fit are
// put together, since text at random is hardly ever accepted.
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
			t.Errorf("%q: written and read again: %+v, %v", value, again, err)
		}
	})
	if accepted == 0 {
		t.Fatal("nothing was accepted")
	}
}

// refusedByKubernetes has the rules of ValidateTolerations in k8s.io/kubernetes.
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
	if accepted == 0 {
		t.Fatal("nothing was accepted")
	}
}

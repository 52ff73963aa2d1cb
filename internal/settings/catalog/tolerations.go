package catalog

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

const tolerationsForm = `must be <key>[=<value>]:<effect>, separated by ";", like dedicated=storage:NoSchedule;maintenance:NoExecute, or "" for none`

// ParseTolerations parses taint-toleration. `k:E` tolerates any value of k, `k=v:E` only v;
// no effect means all effects, and no key (`:`) means all taints. Spaces are ignored.
//
// Longhorn accepts more: for `a=b=c:E` it creates a toleration without key, value and operator,
// and for `=v:E` or `a b/:E` a toleration that the API server refuses in every pod.
func ParseTolerations(value string) ([]corev1.Toleration, error) {
	value = strings.TrimSpace(strings.ReplaceAll(value, " ", ""))
	if value == "" {
		return nil, nil
	}
	var list []corev1.Toleration
	items := strings.Split(value, ";")
	for i, item := range items {
		if item == "" {
			return nil, refuse(tolerationsForm, "%s", emptyItem(i, len(items)))
		}
		t, err := parseToleration(item)
		if err != nil {
			return nil, err
		}
		if slices.Contains(list, t) {
			return nil, refuse(tolerationsForm, "%q occurs twice", item)
		}
		list = append(list, t)
	}
	return list, nil
}

// emptyItem describes an empty item between semicolons.
func emptyItem(i, count int) string {
	if i == count-1 {
		return `remove the ";" at the end`
	}
	return fmt.Sprintf("item %d is empty", i+1)
}

func parseToleration(item string) (corev1.Toleration, error) {
	invalid := func(problem string, args ...any) (corev1.Toleration, error) {
		return corev1.Toleration{}, refuse(tolerationsForm, problem, args...)
	}
	if strings.Count(item, ":") != 1 {
		return invalid(`%q must have one ":"`, item)
	}
	taint, effect, _ := strings.Cut(item, ":")
	t := corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffect(effect)}
	switch t.Effect {
	case "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		return invalid("effect %q must be NoSchedule, PreferNoSchedule, NoExecute or nothing", effect)
	}
	var hasValue bool
	if t.Key, t.Value, hasValue = strings.Cut(taint, "="); hasValue {
		t.Operator = corev1.TolerationOpEqual
	}
	switch {
	case strings.Contains(t.Value, "="):
		return invalid(`%q must have at most one "="`, item)
	case t.Key == "" && hasValue:
		return invalid("%q has a value but no key", item)
	case t.Key != "" && len(validation.IsQualifiedName(t.Key)) > 0:
		return invalid("key %q is not a valid label key", t.Key)
	case len(validation.IsValidLabelValue(t.Value)) > 0:
		return invalid("value %q is not a valid label value", t.Value)
	}
	return t, nil
}

func normalizeTolerations(value string) (string, error) {
	list, err := ParseTolerations(value)
	return TolerationsTrait(list), err
}

// TolerationsTrait writes tolerations sorted and without duplicates: the normal form of taint-toleration, and the trait
// of pods. A toleration that the setting cannot express gets a form that no value has.
func TolerationsTrait(tolerations []corev1.Toleration) string {
	var items []string
	for _, t := range tolerations {
		items = append(items, tolerationText(t))
	}
	slices.Sort(items)
	return strings.Join(slices.Compact(items), ";")
}

func tolerationText(t corev1.Toleration) string {
	text := t.Key
	switch t.Operator {
	case corev1.TolerationOpExists:
	case corev1.TolerationOpEqual, "": // the API's default
		text += "=" + t.Value
	default:
		text += " " + string(t.Operator) + " " + t.Value
	}
	text += ":" + string(t.Effect)
	if t.TolerationSeconds != nil {
		text += fmt.Sprintf(" for %ds", *t.TolerationSeconds)
	}
	return text
}

package cluster

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// builtTolerations returns the tolerations in the storage system's annotation that
// the pod really has.
func builtTolerations(applied string, spec []corev1.Toleration) string {
	list, err := appliedTolerations(applied)
	if err != nil {
		return unreadable
	}
	return catalog.TolerationsTrait(slices.DeleteFunc(list, func(t corev1.Toleration) bool { return !hasToleration(spec, t) }))
}

// otherTolerations returns the tolerations of an installer, Kubernetes or a user.
func otherTolerations(applied string, spec []corev1.Toleration) []corev1.Toleration {
	list, _ := appliedTolerations(applied) // if the annotation can't be parsed, all tolerations count as others
	return slices.DeleteFunc(slices.Clone(spec), func(t corev1.Toleration) bool { return hasToleration(list, t) })
}

func appliedTolerations(applied string) (list []corev1.Toleration, err error) {
	if applied != "" {
		err = json.Unmarshal([]byte(applied), &list)
	}
	return list, err
}

func hasToleration(list []corev1.Toleration, t corev1.Toleration) bool {
	return slices.ContainsFunc(list, func(there corev1.Toleration) bool { return equality.Semantic.DeepEqual(operated(t), operated(there)) })
}

// operated sets the default operator.
func operated(t corev1.Toleration) corev1.Toleration {
	if t.Operator == "" {
		t.Operator = corev1.TolerationOpEqual
	}
	return t
}

package cluster

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/fairlead-io/fairlead/settings"
)

// builtTolerations splits the tolerations of a pod: the trait has those of the
// storage system's own list, kept in an annotation, that really are in the pod. All
// others come from elsewhere: an installer, Kubernetes, a user.
func builtTolerations(applied string, spec []corev1.Toleration) (trait string, others []corev1.Toleration) {
	var list []corev1.Toleration
	if applied != "" {
		if err := json.Unmarshal([]byte(applied), &list); err != nil {
			return unreadable, spec
		}
	}
	in := func(list []corev1.Toleration, t corev1.Toleration) bool {
		return slices.ContainsFunc(list, func(there corev1.Toleration) bool { return equality.Semantic.DeepEqual(operated(t), operated(there)) })
	}
	for _, t := range spec {
		if !in(list, t) {
			others = append(others, t)
		}
	}
	list = slices.DeleteFunc(list, func(t corev1.Toleration) bool { return !in(spec, t) })
	return settings.TolerationsTrait(list), others
}

// operated spells the default operator out.
func operated(t corev1.Toleration) corev1.Toleration {
	if t.Operator == "" {
		t.Operator = corev1.TolerationOpEqual
	}
	return t
}

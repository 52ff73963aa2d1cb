package mutators

import (
	"encoding/json"
	"fmt"
	"slices"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/settings"
	"github.com/fairlead-io/fairlead/storage"
)

// tolerations adds those that are wanted, and takes away those that came from
// the setting, as the annotation says, and are not wanted any more. All others
// are an installer's, Kubernetes' or a user's.
func (m *componentChange) tolerations(spec ComponentSpec, wants ComponentWants) {
	by, asked := wants.By[settings.Tolerations]
	if !asked {
		return
	}
	var applied []corev1.Toleration
	err := json.Unmarshal([]byte(m.annotations.Tolerations), &applied)
	if err != nil { // or there is no such annotation: which came from it is not known
		applied = nil
	}
	kept := slices.DeleteFunc(slices.Clone(spec.Tolerations), func(t corev1.Toleration) bool {
		return tolerates(applied, t) && !tolerates(wants.Tolerations, t)
	})
	for _, t := range wants.Tolerations {
		if !tolerates(kept, t) {
			kept = append(kept, t)
		}
	}
	changed := len(kept) != len(spec.Tolerations) || !slices.EqualFunc(kept, spec.Tolerations, same)
	unreadable := err != nil && m.annotations.Tolerations != ""
	rewritten := unreadable || settings.TolerationsTrait(applied) != settings.TolerationsTrait(wants.Tolerations)
	if !changed && !rewritten {
		return
	}
	m.change(by)
	switch {
	case changed && len(kept) == 0:
		m.patch = append(m.patch, jsonpatch.NewOperation("remove", "/spec/tolerations", nil))
	case changed:
		m.patch = append(m.patch, jsonpatch.NewOperation("add", "/spec/tolerations", kept))
	}
	if rewritten {
		m.written = append(m.written, [2]string{wants.TolerationsAnnotation, tolerationsText(wants.Tolerations)})
	}
}

// tolerationsText is Longhorn's: a list, also where there is none.
func tolerationsText(tolerations []corev1.Toleration) string {
	text, err := json.Marshal(append([]corev1.Toleration{}, tolerations...))
	if err != nil {
		return "[]" // can't be: they are text and numbers
	}
	return string(text)
}

func tolerates(list []corev1.Toleration, t corev1.Toleration) bool {
	return slices.ContainsFunc(list, func(other corev1.Toleration) bool { return same(other, t) })
}

// same, with the operator that the API takes where there is none.
func same(a, b corev1.Toleration) bool {
	return settings.TolerationsTrait([]corev1.Toleration{a}) == settings.TolerationsTrait([]corev1.Toleration{b})
}

// network makes the storage network the wanted one. Networks on other interface
// names stay, in the form that they are in.
func (m *componentChange) network(spec ComponentSpec, namespace string, wants ComponentWants) {
	by, asked := wants.By[settings.StorageAttachment]
	if !asked {
		return
	}
	now, err := storage.ManagedAttachment(m.annotations.Networks, namespace, []string{wants.Interface})
	if err != nil {
		m.skip(ReasonUnreadable, fmt.Sprintf("annotation %s: %v", storage.NetworksAnnotation, err))
		return
	}
	if now == wants.Network {
		return
	}
	if spec.HostNetwork {
		m.skip(ReasonHostNetwork, fmt.Sprintf("Multus adds no interface to pods on the host network; set hostNetwork to false for %s", by))
		return
	}
	var attachments []storage.Attachment
	if !wants.Network.IsZero() {
		attachments = append(attachments, wants.Network)
	}
	text, err := storage.SetManaged(m.annotations.Networks, namespace, []string{wants.Interface}, attachments...)
	if err != nil {
		m.skip(ReasonUnreadable, fmt.Sprintf("annotation %s: %v", storage.NetworksAnnotation, err))
		return
	}
	m.change(by)
	m.written = append(m.written, [2]string{storage.NetworksAnnotation, text})
}

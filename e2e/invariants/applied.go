package invariants

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/longhorn"
)

// appliedEarly: Fairlead reports applied only once the rollout is complete. What Longhorn
// says of its own settings is its own affair: it says so once it has issued what Fairlead may hold back.
// What was read before a value changed may be written a moment after.
func appliedEarly(s *state, e event) []string {
	if rollout, ok := e.after.(*v1alpha1.NetworkRollout); ok && rollout.Status.Phase == phaseApplied {
		return s.rolloutIncomplete(rollout.Status)
	}
	if s.now.Sub(s.changed) < inFlight {
		return nil
	}
	switch o := e.after.(type) {
	case *longhorn.Setting:
		if before, ok := e.before.(*longhorn.Setting); ok && e.byFairlead() && o.Status.Applied && (!before.Status.Applied || before.Value != o.Value) {
			return s.incomplete(o.Name, o.Value)
		}
	case *v1alpha1.Setting:
		if before, ok := e.before.(*v1alpha1.Setting); o.Status.Applied && ok && (!before.Status.Applied || ptr.Deref(before.Status.AppliedValue, "") != ptr.Deref(o.Status.AppliedValue, "")) {
			return s.incomplete(o.Name, ptr.Deref(o.Status.AppliedValue, ""))
		}
	}
	return nil
}

// stillApplied: nothing says for long that it is applied while it is not.
func stillApplied(s *state) []string {
	var found []string
	for setting := range all[*v1alpha1.Setting](s) {
		if setting.Status.Applied {
			found = append(found, s.incomplete(setting.Name, setting.Status.EffectiveValue)...)
		}
	}
	if rollout := s.rollout(); rollout != nil && rollout.Status.Phase == phaseApplied {
		found = append(found, s.rolloutIncomplete(rollout.Status)...)
	}
	return found
}

const phaseApplied = "Applied"

// incomplete says what is not as the value of a setting wants it. Settings that no
// test changes are not known here.
func (s *state) incomplete(name, value string) []string {
	if !s.hasValue(name) {
		return nil
	}
	switch name {
	case storageNetwork:
		return s.others(isInstanceManager, func(pod *corev1.Pod) string { return common(pod.Annotations) }, name, s.storageNetwork())
	case endpointNetworkForRWX:
		return s.others(isClient, func(pod *corev1.Pod) string { return common(pod.Annotations) }, name, onNetwork(value, names.EndpointInterface))
	case storageNetworkForRWX:
		// Without an applied network to be on, there is nothing to wait for.
		if _, applied := s.value(storageNetwork); !applied && value == "true" {
			return nil
		}
		return s.others(isClient, func(pod *corev1.Pod) string { return common(pod.Annotations) }, name, s.wanted())
	case "priority-class":
		return s.others(isManaged, priorityClass, name, value)
	case "taint-toleration":
		return s.others(isManaged, tolerations, name, value)
	case "system-managed-components-node-selector":
		return s.others(isManaged, nodeSelector, name, value)
	case "guaranteed-instance-manager-cpu":
		found := s.others(runsEngine("v1"), share, name, ofEngine(value, "v1"))
		if get[*longhorn.Setting](s, "longhorn.io/settings", "v2-data-engine-guaranteed-instance-manager-cpu") != nil {
			return found
		}
		return append(found, s.others(runsEngine("v2"), share, name, ofEngine(value, "v2"))...)
	case "v2-data-engine-guaranteed-instance-manager-cpu":
		return s.others(runsEngine("v2"), milliCPU, name, value)
	case "v1-data-engine":
		return s.engineRuns("v1", name, value)
	case "v2-data-engine":
		return s.engineRuns("v2", name, value)
	case "system-managed-csi-components-resource-limits":
		return s.withoutResources(name, value)
	}
	if built, known := newer[name]; known {
		return s.others(built.is, built.trait, name, ofEngine(value, "v2"))
	}
	return nil
}

// hasValue reports whether Longhorn or Fairlead has a value of the setting. A default of
// the catalog asks for nothing: Longhorn 1.7 has no setting for some traits of its pods.
func (s *state) hasValue(name string) bool {
	own := get[*v1alpha1.Setting](s, v1alpha1.GroupVersion.Group+"/settings", name)
	return own != nil && own.Value != nil || get[*longhorn.Setting](s, "longhorn.io/settings", name) != nil
}

// others are the pods whose trait is another than wanted.
func (s *state) others(is func(*corev1.Pod) bool, trait func(*corev1.Pod) string, setting, want string) []string {
	var found []string
	for _, pod := range s.staying(is) {
		if got := trait(pod); got != want {
			found = append(found, fmt.Sprintf("%s is applied with %q, and pod %s has %q", setting, want, pod.Name, got))
		}
	}
	return found
}

func (s *state) rolloutIncomplete(status v1alpha1.NetworkRolloutStatus) []string {
	var found []string
	if status.Clients.Network != status.Desired || status.Servers.Network != status.Desired {
		found = append(found, fmt.Sprintf("Applied with %q, and the record says clients %q, servers %q", status.Desired, status.Clients.Network, status.Servers.Network))
	}
	if ds := get[*appsv1.DaemonSet](s, "apps/daemonsets", names.ClientDaemonSet); ds != nil && common(ds.Spec.Template.Annotations) != status.Desired {
		found = append(found, fmt.Sprintf("Applied with %q, and the CSI plugin's template is on %q", status.Desired, common(ds.Spec.Template.Annotations)))
	}
	return append(found, s.others(isClient, func(pod *corev1.Pod) string { return common(pod.Annotations) }, "the rollout", status.Desired)...)
}

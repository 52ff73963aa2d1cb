package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/plan"
)

var errNotOfTemplates = errors.New("is not written into templates")

// writeTraits writes the wanted traits into a template as longhorn-manager would, whose own controller
// then finds nothing to do. The annotation keeps the tolerations that were applied last.
func writeTraits(annotation string, object client.Object, template *corev1.PodTemplateSpec, values catalog.Values, wants map[catalog.Trait]plan.Want) error {
	for trait, want := range wants {
		value := values[want.Setting].Text
		var err error
		switch trait {
		case catalog.Tolerations:
			err = writeTolerations(annotation, object, &template.Spec, value)
		case catalog.NodeSelector:
			template.Spec.NodeSelector, err = catalog.ParseNodeSelector(value)
		case catalog.PriorityClassName:
			template.Spec.PriorityClassName = want.Text
		case catalog.ProbePeriod, catalog.ProbeTimeout, catalog.ProbeFailures:
			err = writeProbe(&template.Spec, trait, want.Text)
		case catalog.Resources:
			err = writeResources(object.GetName(), &template.Spec, value)
		default:
			err = errNotOfTemplates
		}
		if err != nil {
			return fmt.Errorf("%s: %w", trait, err)
		}
	}
	return nil
}

// writeTolerations adds the wanted tolerations and removes those applied earlier. Tolerations of
// others stay.
func writeTolerations(annotation string, object client.Object, pod *corev1.PodSpec, value string) error {
	wanted, err := catalog.ParseTolerations(value)
	if err != nil {
		return err
	}
	var before []corev1.Toleration
	if text := object.GetAnnotations()[annotation]; text != "" {
		if err := json.Unmarshal([]byte(text), &before); err != nil {
			before = nil // unknown what was applied: all tolerations stay
		}
	}
	kept := slices.DeleteFunc(slices.Clone(pod.Tolerations), func(t corev1.Toleration) bool {
		return slices.Contains(before, t) || slices.Contains(wanted, t)
	})
	pod.Tolerations = append(kept, wanted...)
	text, err := json.Marshal(append([]corev1.Toleration{}, wanted...)) // [], never null
	if err != nil {
		return err
	}
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotation] = string(text)
	object.SetAnnotations(annotations)
	return nil
}

func writeProbe(pod *corev1.PodSpec, trait catalog.Trait, text string) error {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return err
	}
	for i := range pod.Containers {
		probe := pod.Containers[i].LivenessProbe
		if probe == nil {
			continue
		}
		switch trait {
		case catalog.ProbePeriod:
			probe.PeriodSeconds = int32(n)
		case catalog.ProbeTimeout:
			probe.TimeoutSeconds = int32(n)
		case catalog.ProbeFailures:
			probe.FailureThreshold = int32(n)
		}
	}
	return nil
}

// writeResources sets the containers' resources to the value; unnamed containers get none.
func writeResources(object string, pod *corev1.PodSpec, value string) error {
	resources, err := catalog.ParseCSIResources(value)
	if err != nil {
		return err
	}
	for i := range pod.Containers {
		if name := pod.Containers[i].Name; slices.Contains(catalog.CSIContainers(object), name) {
			pod.Containers[i].Resources = resources[name]
		}
	}
	return nil
}

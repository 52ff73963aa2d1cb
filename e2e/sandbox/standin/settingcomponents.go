package standin

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// updateComponents follows updateTaintToleration, updatePriorityClass and updateNodeSelector of
// controller/setting_controller.go: templates are updated and pods deleted, if all volumes are detached.
func (l Longhorn) updateComponents(ctx context.Context, setting string) error {
	values, err := l.currentSettings(ctx)
	if err != nil {
		return err
	}
	templates, err := l.templates(ctx)
	if err != nil {
		return err
	}
	pods, err := l.podsOf(ctx, "instance-manager", "share-manager", "backing-image-manager")
	if err != nil {
		return err
	}
	templates = slices.DeleteFunc(templates, func(o client.Object) bool { return values.hold(setting, o, &templateOf(o).Spec) })
	pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool { return values.hold(setting, &p, &p.Spec) })
	if len(templates) == 0 && len(pods) == 0 {
		return nil
	}
	if err := pass(ctx, l.volumesDetached); err != nil {
		return err
	}
	for _, o := range templates {
		if err := values.bring(setting, o, &templateOf(o).Spec); err != nil {
			return err
		}
		if err := l.client.Update(ctx, o); err != nil {
			return fmt.Errorf("updating %T %s: %w", o, o.GetName(), err)
		}
	}
	return l.deletePods(ctx, pods)
}

// templates are the Deployments and DaemonSets that Longhorn manages (collectRuntimeObjects).
func (l Longhorn) templates(ctx context.Context) ([]client.Object, error) {
	managed := []client.ListOption{client.InNamespace(l.namespace), client.MatchingLabels{"longhorn.io/managed-by": "longhorn-manager"}}
	var deployments appsv1.DeploymentList
	if err := l.client.List(ctx, &deployments, managed...); err != nil {
		return nil, fmt.Errorf("listing Deployments: %w", err)
	}
	var daemonSets appsv1.DaemonSetList
	if err := l.client.List(ctx, &daemonSets, managed...); err != nil {
		return nil, fmt.Errorf("listing DaemonSets: %w", err)
	}
	var all []client.Object
	for i := range deployments.Items {
		all = append(all, &deployments.Items[i])
	}
	for i := range daemonSets.Items {
		all = append(all, &daemonSets.Items[i])
	}
	return all, nil
}

// templateOf a Deployment or DaemonSet.
func templateOf(o client.Object) *corev1.PodTemplateSpec {
	switch o := o.(type) {
	case *appsv1.Deployment:
		return &o.Spec.Template
	case *appsv1.DaemonSet:
		return &o.Spec.Template
	}
	return nil
}

// hold tells whether a pod or template is built by the value of a setting. Of tolerations only Longhorn's own count.
func (v settingValues) hold(setting string, o client.Object, spec *corev1.PodSpec) bool {
	switch setting {
	case "priority-class":
		return spec.PriorityClassName == v[setting]
	case "system-managed-components-node-selector":
		return maps.Equal(spec.NodeSelector, parseSelector(v[setting]))
	}
	wanted, err := parseTolerations(v[setting])
	return err == nil && reflect.DeepEqual(byTaint(lastTolerations(o)), byTaint(wanted))
}

// bring a template to the value of a setting; tolerations of others stay (getFinalTolerations).
func (v settingValues) bring(setting string, o client.Object, spec *corev1.PodSpec) error {
	switch setting {
	case "priority-class":
		spec.PriorityClassName = v[setting]
		return nil
	case "system-managed-components-node-selector":
		spec.NodeSelector = parseSelector(v[setting])
		return nil
	}
	wanted, err := parseTolerations(v[setting])
	if err != nil {
		return err
	}
	last := byTaint(lastTolerations(o))
	spec.Tolerations = slices.DeleteFunc(spec.Tolerations, func(t corev1.Toleration) bool { _, own := last[taintOf(t)]; return own })
	spec.Tolerations = append(spec.Tolerations, wanted...)
	written, err := json.Marshal(wanted)
	if err != nil {
		return fmt.Errorf("writing tolerations: %w", err)
	}
	annotations := maps.Clone(o.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[tolerationsAnnotation] = string(written)
	o.SetAnnotations(annotations)
	return nil
}

func lastTolerations(o client.Object) (last []corev1.Toleration) {
	_ = json.Unmarshal([]byte(o.GetAnnotations()[tolerationsAnnotation]), &last)
	return last
}

// byTaint follows TolerationListToMap in util/util.go.
func byTaint(tolerations []corev1.Toleration) map[string]corev1.Toleration {
	all := map[string]corev1.Toleration{}
	for _, t := range tolerations {
		all[taintOf(t)] = t
	}
	return all
}

func taintOf(t corev1.Toleration) string {
	return fmt.Sprintf("%s=%s:%s:%s", t.Key, t.Value, t.Operator, t.Effect)
}

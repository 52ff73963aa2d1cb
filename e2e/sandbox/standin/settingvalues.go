package standin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox/standin/release"
	"github.com/fairlead-io/fairlead/internal/longhorn"
)

const tolerationsAnnotation = "longhorn.io/last-applied-tolerations"

// settingValues are values of Longhorn's settings by name.
type settingValues map[string]string

func (l Longhorn) currentSettings(ctx context.Context) (settingValues, error) {
	var list longhorn.SettingList
	if err := l.client.List(ctx, &list, client.InNamespace(l.namespace)); err != nil {
		return nil, fmt.Errorf("listing settings: %w", err)
	}
	values := settingValues{}
	for _, setting := range list.Items {
		values[setting.Name] = setting.Value
	}
	return values, nil
}

// build gives a pod what longhorn-manager gives all pods that it makes.
func (v settingValues) build(pod *corev1.Pod) error {
	tolerations, err := parseTolerations(v["taint-toleration"])
	if err != nil {
		return err
	}
	applied, err := json.Marshal(tolerations)
	if err != nil {
		return fmt.Errorf("writing tolerations: %w", err)
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[tolerationsAnnotation] = string(applied)
	pod.Spec.Tolerations = tolerations
	pod.Spec.NodeSelector = parseSelector(v["system-managed-components-node-selector"])
	pod.Spec.PriorityClassName = v["priority-class"]
	return nil
}

// buildOnStorageNetwork is for the pods that use the storage network beside.
func (v settingValues) buildOnStorageNetwork(pod *corev1.Pod) error {
	if err := v.build(pod); err != nil {
		return err
	}
	maps.Copy(pod.Annotations, release.CNIAnnotation(v[release.StorageNetwork], release.StorageInterface))
	return nil
}

var errToleration = errors.New("missing key/value and effect pair")

// parseTolerations is as lenient as UnmarshalTolerations in types/setting.go.
func parseTolerations(value string) ([]corev1.Toleration, error) {
	tolerations := []corev1.Toleration{} // it is written as [], never null
	value = strings.ReplaceAll(value, " ", "")
	if value == "" {
		return tolerations, nil
	}
	for item := range strings.SplitSeq(value, ";") {
		parts := strings.Split(item, ":")
		if len(parts) != 2 {
			return nil, fmt.Errorf("reading toleration %q: %w", item, errToleration)
		}
		t := corev1.Toleration{Effect: corev1.TaintEffect(parts[1])}
		switch pair := strings.Split(parts[0], "="); len(pair) {
		case 1:
			t.Key, t.Operator = pair[0], corev1.TolerationOpExists
		case 2:
			t.Key, t.Value, t.Operator = pair[0], pair[1], corev1.TolerationOpEqual
		}
		tolerations = append(tolerations, t)
	}
	return tolerations, nil
}

func parseSelector(value string) map[string]string {
	var selector map[string]string
	for item := range strings.SplitSeq(value, ";") {
		if key, value, found := strings.Cut(strings.TrimSpace(item), ":"); found {
			if selector == nil {
				selector = map[string]string{}
			}
			selector[key] = value
		}
	}
	return selector
}

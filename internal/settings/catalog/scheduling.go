package catalog

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// The settings for the placement and priority of the pods of the storage system. Source: longhorn-manager types/setting.go.
const (
	TaintToleration              Name = "taint-toleration"
	SystemManagedNodeSelector    Name = "system-managed-components-node-selector"
	PriorityClass                Name = "priority-class"
	affectsEverySystemManagedPod      = "DaemonSets, Deployments, instance-manager, share-manager and backing-image-manager pods"
)

func schedulingFamily() []Definition {
	return []Definition{
		{
			Name: TaintToleration, Normalize: normalizeTolerations, Form: tolerationsForm, Since: "0.8", DangerZone: true, Gate: AllVolumesDetached,
			Trait: Tolerations, Wants: wants(everyComponent, normalizeTolerations),
			Affects: affectsEverySystemManagedPod,
		},
		{
			Name: SystemManagedNodeSelector, Normalize: normalizeNodeSelector, Form: nodeSelectorForm, Since: "1.2", DangerZone: true, Gate: AllVolumesDetached,
			Trait: NodeSelector, Wants: wants(everyComponent, normalizeNodeSelector),
			Affects: affectsEverySystemManagedPod,
		},
		{
			Name: PriorityClass, Normalize: normalizePriorityClass, Form: priorityClassForm, Since: "1.1", DangerZone: true, Gate: AllVolumesDetached,
			Trait: PriorityClassName, Wants: wants(everyComponent, normalizePriorityClass),
			Affects: affectsEverySystemManagedPod,
		},
	}
}

const priorityClassForm = `must be the name of a PriorityClass, like longhorn-critical, or "" for none`

// normalizePriorityClass does not know which classes exist. The API server refuses pods with a missing class.
func normalizePriorityClass(value string) (string, error) {
	value = strings.TrimSpace(value)
	if value != "" && len(validation.IsDNS1123Subdomain(value)) > 0 {
		return "", malformed{form: priorityClassForm}
	}
	return value, nil
}

package validators

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/settings/planner"
)

// InstanceManagerPod is the view of an instance manager's pod.
type InstanceManagerPod struct {
	Metadata struct {
		Name              string `json:"name"`
		DeletionTimestamp string `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
	Status struct {
		Conditions []PodCondition `json:"conditions"`
	} `json:"status"`
}

// PodCondition is one condition of a pod.
type PodCondition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
}

// IsReady reports whether the pod is Ready and not terminating.
func (p InstanceManagerPod) IsReady() bool {
	return p.Metadata.DeletionTimestamp == "" && slices.Contains(p.Status.Conditions, PodCondition{"Ready", "True"})
}

// ValidateInstanceManagerDeletion refuses to restart an instance manager that serves an attached volume.
// The pod may be deleted if the pod or the node is not Ready, or if the instance manager does not run.
//
// Objects: Ready pods of instance managers that the storage system itself deletes. Evictions and deletions by
// administrators, Kubernetes' controllers and Fairlead are not sent.
// Source: longhorn-manager controller/setting_controller.go, updateCNI: the sync of an RWX network setting
// passes the gate of that setting alone, and deletes every instance manager that storage-network waits for.
// Longhorn's instance manager controller (areDangerZoneSettingsSyncedToIMPod) deletes none with an instance running.
func ValidateInstanceManagerDeletion(p InstanceManagerPod, facts planner.InstanceManagerFacts) Verdict {
	if !p.IsReady() || !facts.NodeReady || !facts.Running {
		return Verdict{Reason: ReasonMayBeReplaced}
	}
	if facts.Volume == "" {
		return Verdict{Reason: ReasonIdle}
	}
	return refusal(ReasonInstanceManagerInUse, field.Forbidden(field.NewPath("metadata", "name"), fmt.Sprintf(
		"instance manager %s on %s runs %s of volume %s, which is attached; the pod is restarted when the instance manager runs no engine or replica. To restart the pod now, delete it with your own account",
		p.Metadata.Name, p.Spec.NodeName, facts.Instance, facts.Volume)))
}

package validators

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// InstanceManagerPod is the view of an instance manager's pod that is deleted.
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

// Works tells whether the pod is Ready and is to stay.
func (p InstanceManagerPod) Works() bool {
	return p.Metadata.DeletionTimestamp == "" && slices.Contains(p.Status.Conditions, PodCondition{"Ready", "True"})
}

// InstanceManagerFacts are the facts that the deletion of an instance manager's pod is judged by, read live.
type InstanceManagerFacts struct {
	// Running: the instance manager exists, is not being deleted, and is in state running.
	Running   bool
	NodeReady bool
	// Instance is an engine or replica that runs there for Volume, which is attached. Both are empty if there is none.
	Instance, Volume string
}

// ValidateInstanceManagerDeletion refuses to restart an instance manager that serves an attached volume.
// What is broken may be replaced: a pod or node that is not Ready, an instance manager that does not run.
//
// Objects: Ready pods of instance managers that the storage system itself deletes. It is not asked about
// evictions, nor about deletions by administrators, by Kubernetes' controllers and by Fairlead.
// Source: longhorn-manager controller/setting_controller.go, updateCNI: the sync of an RWX network setting
// passes the gate of that setting alone, and deletes every instance manager that storage-network waits for.
// Its own instance manager controller (areDangerZoneSettingsSyncedToIMPod) deletes none with an instance running.
func ValidateInstanceManagerDeletion(p InstanceManagerPod, facts InstanceManagerFacts) Verdict {
	if !p.Works() || !facts.NodeReady || !facts.Running {
		return Verdict{Reason: ReasonMayBeReplaced}
	}
	if facts.Volume == "" {
		return Verdict{Reason: ReasonIdle}
	}
	return Verdict{Reason: ReasonInstanceManagerInUse, Problems: field.ErrorList{field.Forbidden(field.NewPath("metadata", "name"), fmt.Sprintf(
		"instance manager %s on %s runs %s of volume %s, which is attached; the pod is restarted once it runs no engine or replica. To restart it now, delete the pod with an account of your own",
		p.Metadata.Name, p.Spec.NodeName, facts.Instance, facts.Volume))}}
}

package validators

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// NodeFence is the view of a NodeFence.
type NodeFence struct {
	Metadata struct {
		Name        string            `json:"name"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
		Finalizers  []string          `json:"finalizers"`
	} `json:"metadata"`
	Status v1alpha1.NodeFenceStatus `json:"status"`
}

// node is the name of the machine, now or earlier.
func (n NodeFence) node() string { return cmp.Or(n.Status.NodeName, n.Metadata.Name) }

// NodeFenceFacts say who changes a NodeFence, and whether that user may override gates.
type NodeFenceFacts struct {
	User        string
	MayOverride bool
	// Controller: the user is Fairlead's controller, which owns the labels and the finalizer.
	Controller bool
}

// maxReason limits the reason of an override: events quote the reason, and hold 1 KiB.
const maxReason = 512

// ValidateNodeFence checks a break-glass override. An override needs a gate and a reason, a user with the RBAC verb, and
// the mutating webhook's record of this user and incident. Every user who may change the object may remove a request,
// which closes the gate.
//
// The labels and the finalizer belong to the controller. By a label, the API server finds the nodes whose volumes it holds
// while Fairlead is down. The finalizer keeps the record during an incident.
//
// Objects: NodeFences whose override, label or finalizer changes.
func ValidateNodeFence(n NodeFence, old *NodeFence, facts NodeFenceFacts) Verdict {
	v := Verdict{Reason: ReasonValid}
	var before NodeFence
	if old != nil {
		before = *old
	}
	if refuseReservedMeta(&v, n, before, facts); len(v.Problems) > 0 {
		return v
	}
	path := field.NewPath("metadata", "annotations")
	request, requested := n.Metadata.Annotations[fence.OverrideAnnotation]
	record := n.Metadata.Annotations[fence.OverriddenAnnotation]
	requestChanged := request != before.Metadata.Annotations[fence.OverrideAnnotation]
	recordChanged := record != before.Metadata.Annotations[fence.OverriddenAnnotation]
	gate, reason, wellFormed := fence.ParseOverride(request)
	switch {
	case !requestChanged && !recordChanged, !requested && !recordChanged:
		return v
	case !requested:
		v.refuse(ReasonOverride, field.Forbidden(path.Key(fence.OverriddenAnnotation), "is Fairlead's record of overrides: do not change the annotation"))
	case !wellFormed:
		v.refuse(ReasonOverride, field.Invalid(path.Key(fence.OverrideAnnotation), request, fmt.Sprintf(
			"must be \"<gate>: <reason>\", with gate %s (the node is off: its volumes may be attached elsewhere), %s (unfence the node although it has not rebooted) or %s (the out-of-service taint may be added or removed)",
			fence.GateAttach, fence.GateUnfence, fence.GateTaint)))
	case len(reason) > maxReason:
		v.refuse(ReasonOverride, field.TooLong(path.Key(fence.OverrideAnnotation), request, maxReason))
	case !facts.MayOverride:
		v.refuse(ReasonOverride, field.Forbidden(path.Key(fence.OverrideAnnotation), fmt.Sprintf(
			"%s may not override gates: that takes the verb %q on nodefences.fairlead.io (ClusterRole fairlead-fence-break-glass)", facts.User, fence.OverrideVerb)))
	case before.Status.Incident == "" && gate != fence.GateTaint:
		v.refuse(ReasonOverride, field.Forbidden(path.Key(fence.OverrideAnnotation), fmt.Sprintf(
			"there is nothing to override yet: node %s is in no incident, and gate %s is opened for one incident. Try again once the node is %s (kubectl get nodefence %s)",
			n.node(), gate, v1alpha1.NodeLost, n.Metadata.Name)))
	case !recordChanged && fence.ReadOverride(n.Metadata.Annotations, before.Status).Gate != "":
		v.refuse(ReasonOverride, field.Forbidden(path.Key(fence.OverrideAnnotation),
			"the override was used before: give a new reason, and do not keep the annotation in files that are applied again"))
	case record == "":
		v.refuse(ReasonOverride, field.Forbidden(path.Key(fence.OverrideAnnotation),
			"the override is not recorded: Fairlead's mutating webhook did not answer; try again"))
	default:
		// The scope is the stored incident: another scope would open the gate of the next incident.
		o := fence.ReadOverride(n.Metadata.Annotations, before.Status)
		if o.Gate != gate || o.By != facts.User {
			v.refuse(ReasonOverride, field.Forbidden(path.Key(fence.OverriddenAnnotation), "is written by Fairlead's mutating webhook: remove the annotation from your change"))
			break
		}
		v.Reason = ReasonOverridden
		v.Warnings = append(v.Warnings, fmt.Sprintf("gate %s of node %s is open for %s, in your name: %s", gate, n.node(), o.Scope, effect(gate, n.node())))
	}
	return v
}

// refuseReservedMeta reserves the labels and the finalizer for the controller. With gate unfence open and no fence left,
// others may remove the finalizer too.
func refuseReservedMeta(v *Verdict, n, before NodeFence, facts NodeFenceFacts) {
	if facts.Controller {
		return
	}
	metadata := field.NewPath("metadata")
	for _, l := range []struct{ label, use string }{
		{fence.PhaseLabel, "by the label, the API server finds the nodes whose volumes it holds while Fairlead is down"},
		{fence.NodeLabel, "by the label, Fairlead finds the machines that have or had a node's name"},
	} {
		if n.Metadata.Labels[l.label] != before.Metadata.Labels[l.label] {
			v.refuse(ReasonReserved, field.Forbidden(metadata.Child("labels").Key(l.label), "is written by Fairlead's controller: "+l.use+"; do not change the label"))
		}
	}
	has := slices.Contains(n.Metadata.Finalizers, fence.RecordFinalizer)
	allowed := !has && fence.ReadOverride(before.Metadata.Annotations, before.Status).Gate == fence.GateUnfence
	switch changed := has != slices.Contains(before.Metadata.Finalizers, fence.RecordFinalizer); {
	case changed && allowed && len(before.Status.Fences) > 0:
		v.refuse(ReasonReserved, field.Forbidden(metadata.Child("finalizers"), fence.RecordFinalizer+" "+recordNeeded(n.Metadata.Name, before.Status)))
	case changed && !allowed:
		v.refuse(ReasonReserved, field.Forbidden(metadata.Child("finalizers"), fmt.Sprintf(
			"%s belongs to Fairlead's controller: the finalizer keeps the only record of the node's volumes and fences until none is left. If the node never comes back: %s",
			fence.RecordFinalizer, fence.OverrideCommand(n.Metadata.Name, fence.GateUnfence))))
	}
}

// recordNeeded says why the record is needed although gate unfence is open: without the record no NetworkFence is
// unfenced, and the addresses stay blocked for their next owners.
func recordNeeded(node string, s v1alpha1.NodeFenceStatus) string {
	var names []string
	for _, f := range s.Fences {
		names = append(names, f.Name)
	}
	return fmt.Sprintf("stays until the node is unfenced (NetworkFence %s), or its addresses would stay blocked. With gate %s open, Fairlead unfences the node now, and deletes the record of a gone node by itself. To see what Fairlead waits for: kubectl get nodefence %s -o yaml",
		strings.Join(names, ", "), fence.GateUnfence, node)
}

// effect says what an open gate allows.
func effect(gate, node string) string {
	switch gate {
	case fence.GateAttach:
		return fmt.Sprintf("the volumes of node %s may be attached elsewhere although the node is not fenced; if the node still runs, they have two writers", node)
	case fence.GateUnfence:
		return fmt.Sprintf("node %s is unfenced without a reboot; its old mounts can write to the storage again", node)
	default:
		return fmt.Sprintf("the out-of-service taint of node %s may be added and removed; Kubernetes then detaches its volumes even if they are in use", node)
	}
}

// ValidateNodeFenceDeletion refuses to delete a record that could not be recreated (fence.Keep). With gate unfence open,
// the record may be deleted once no fence is left.
//
// Objects: NodeFences that are deleted, other than by Fairlead itself.
func ValidateNodeFenceDeletion(n NodeFence) Verdict {
	v := Verdict{Reason: ReasonValid}
	s := n.Status
	unfence := fence.ReadOverride(n.Metadata.Annotations, s).Gate == fence.GateUnfence
	switch {
	case !fence.Keep(s), unfence && len(s.Fences) == 0:
		return v
	case unfence:
		v.refuse(ReasonRecordNeeded, field.Forbidden(field.NewPath("status", "fences"), "the record of node "+n.node()+" "+recordNeeded(n.Metadata.Name, s)))
		return v
	case s.Phase == v1alpha1.NodeHealthy && len(s.Fences) == 0:
		v.refuse(ReasonRecordNeeded, field.Forbidden(field.NewPath("status", "volumes"), fmt.Sprintf(
			"node %s is %s: the NodeFence is the only record of mounts that the Node does not show. Wait until the node has unmounted its volumes, or reboot the node",
			n.node(), fence.ReasonStillMounted)))
		return v
	}
	v.refuse(ReasonRecordNeeded, field.Forbidden(field.NewPath("status", "phase"), fmt.Sprintf(
		"node %s is %s: the NodeFence is the only record of its volumes and fences. Wait until the node is %s; Fairlead deletes the record of a gone node by itself, once nothing is held or fenced. If the machine never comes back: %s",
		n.node(), s.Phase, v1alpha1.NodeHealthy, fence.OverrideCommand(n.Metadata.Name, fence.GateUnfence))))
	return v
}

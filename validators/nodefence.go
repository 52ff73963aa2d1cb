package validators

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	Spec v1alpha1.NodeFenceSpec `json:"spec"`
}

// node is the name of the machine, now or earlier.
func (n NodeFence) node() string { return cmp.Or(n.Spec.NodeName, n.Metadata.Name) }

// NodeFenceFacts say who changes a NodeFence, and whether that user may override gates.
type NodeFenceFacts struct {
	User        string
	MayOverride bool
	// Controller: the user is Fairlead's controller, which owns the spec, the labels and the finalizer.
	Controller bool
}

// maxReason limits the reason of an override: events quote the reason, and hold 1 KiB.
const maxReason = 512

// ValidateNodeFence checks a break-glass override. An override needs a gate and a reason, a user with the RBAC verb, and
// the mutating webhook's record of this user. Every user who may change the object may take a request back that was not carried out yet.
//
// The spec, the labels and the finalizer belong to the controller. The spec is the memory of fencing. By a label, the API server finds the
// boots whose volumes it holds while Fairlead is down. The finalizer keeps the record during an incident.
//
// Objects: NodeFences whose override, spec, label or finalizer changes.
func ValidateNodeFence(n NodeFence, old *NodeFence, facts NodeFenceFacts) Verdict {
	v := Verdict{Reason: ReasonValid}
	var before NodeFence
	if old != nil {
		before = *old
	}
	if restored := old == nil && facts.MayOverride; !restored { // else from a backup
		refuseReserved(&v, n, before, facts)
	}
	if len(v.Problems) > 0 {
		return v
	}
	path := field.NewPath("metadata", "annotations")
	request, requested := n.Metadata.Annotations[fence.OverrideAnnotation]
	record := n.Metadata.Annotations[fence.OverriddenAnnotation]
	requestChanged := request != before.Metadata.Annotations[fence.OverrideAnnotation]
	recordChanged := record != before.Metadata.Annotations[fence.OverriddenAnnotation]
	gate, reason, wellFormed := fence.ParseOverride(request)
	switch {
	case !requestChanged && !recordChanged, !requested:
		return v
	case !wellFormed:
		v.refuse(ReasonOverride, field.Invalid(path.Key(fence.OverrideAnnotation), request, fmt.Sprintf(
			"must be \"<gate>: <reason>\", with gate %s (the node is off: its volumes may be attached elsewhere), %s (unfence the node although it has not rebooted) or %s (the out-of-service taint may be added or removed)",
			fence.GateAttach, fence.GateUnfence, fence.GateTaint)))
	case len(reason) > maxReason:
		v.refuse(ReasonOverride, field.TooLong(path.Key(fence.OverrideAnnotation), request, maxReason))
	case !facts.MayOverride:
		v.refuse(ReasonOverride, field.Forbidden(path.Key(fence.OverrideAnnotation), fmt.Sprintf(
			"%s may not override gates: that takes the verb %q on nodefences.fairlead.io (ClusterRole fairlead-fence-break-glass)", facts.User, fence.OverrideVerb)))
	case !fence.IsLost(before.Spec) && gate != fence.GateTaint:
		v.refuse(ReasonOverride, field.Forbidden(path.Key(fence.OverrideAnnotation), fmt.Sprintf(
			"there is nothing to override yet: node %s is in no incident, and gate %s is overridden once, for what is on record then. Try again once the node is %s (kubectl get nodefence %s)",
			n.node(), gate, v1alpha1.NodeLost, n.Metadata.Name)))
	case fence.WasMade(before.Spec, gate, reason, facts.User):
		v.refuse(ReasonOverride, field.Forbidden(path.Key(fence.OverrideAnnotation),
			"the same override was made before (spec.acts): give a new reason, and do not keep the annotation in files that are applied again"))
	case record == "":
		v.refuse(ReasonOverride, field.Forbidden(path.Key(fence.OverrideAnnotation),
			"the override is not recorded: Fairlead's mutating webhook did not answer; try again"))
	default:
		if o := fence.ReadRequest(n.Metadata.Annotations); o.Gate != gate || o.By != facts.User {
			v.refuse(ReasonOverride, field.Forbidden(path.Key(fence.OverriddenAnnotation), "is written by Fairlead's mutating webhook: remove the annotation from your change"))
			break
		}
		v.Reason = ReasonOverridden
		v.Warnings = append(v.Warnings, fmt.Sprintf("gate %s of node %s is overridden once, in your name: %s", gate, n.node(), effect(gate, n.node())))
	}
	return v
}

// refuseReserved reserves the spec, the labels and the finalizer for the controller.
func refuseReserved(v *Verdict, n, before NodeFence, facts NodeFenceFacts) {
	if facts.Controller {
		return
	}
	if !equality.Semantic.DeepEqual(n.Spec, before.Spec) {
		v.refuse(ReasonReserved, field.Forbidden(field.NewPath("spec"), "is written by Fairlead's controller, which fences by it: do not change it. What you know about the machine, say by an override: "+
			fence.OverrideCommand(n.Metadata.Name, fence.GateAttach)))
	}
	metadata := field.NewPath("metadata")
	for _, l := range []struct{ label, use string }{
		{fence.IncidentLabel, "by the label, the API server finds the nodes whose volumes it holds while Fairlead is down"},
		{fence.NodeLabel, "by the label, people find the boots of a node"},
	} {
		if n.Metadata.Labels[l.label] != before.Metadata.Labels[l.label] {
			v.refuse(ReasonReserved, field.Forbidden(metadata.Child("labels").Key(l.label), "is written by Fairlead's controller: "+l.use+"; do not change the label"))
		}
	}
	if !slices.Equal(ownFinalizers(n), ownFinalizers(before)) {
		v.refuse(ReasonReserved, field.Forbidden(metadata.Child("finalizers"), fmt.Sprintf(
			"belong to Fairlead's controller: %s keeps the only record of the node's volumes and fences until none is left, and no other finalizer may delay a deletion meanwhile. If the node never comes back: %s",
			fence.RecordFinalizer, fence.OverrideCommand(n.Metadata.Name, fence.GateUnfence))))
	}
}

// ownFinalizers of a record, without those by which Kubernetes itself deletes.
func ownFinalizers(n NodeFence) []string {
	own := slices.DeleteFunc(slices.Clone(n.Metadata.Finalizers), func(f string) bool {
		return f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
	})
	slices.Sort(own)
	return own
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

// ValidateNodeFenceDeletion refuses to delete a record that could not be recreated (fence.Keep).
//
// Objects: NodeFences that are deleted, other than by Fairlead itself.
func ValidateNodeFenceDeletion(n NodeFence) Verdict {
	v := Verdict{Reason: ReasonValid}
	s := n.Spec
	switch {
	case !fence.Keep(s):
	case s.LostSince == nil && len(s.Fences) == 0:
		v.refuse(ReasonRecordNeeded, field.Forbidden(field.NewPath("spec", "volumes"), fmt.Sprintf(
			"node %s is Ready, and the NodeFence is the only record of mounts that the Node does not show. Wait until the node has unmounted its volumes, or reboot the node", n.node())))
	default:
		v.refuse(ReasonRecordNeeded, field.Forbidden(field.NewPath("spec"), fmt.Sprintf(
			"the NodeFence is the only record of the volumes and fences of node %s. Fairlead deletes the record of a gone node by itself, once nothing is held or fenced: without the record the addresses would stay blocked. If the machine never comes back: %s. To see what Fairlead waits for: kubectl get nodefence %s -o yaml",
			n.node(), fence.OverrideCommand(n.Metadata.Name, fence.GateUnfence), n.Metadata.Name)))
	}
	return v
}

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

// NodeFence is the view of a NodeFence that is changed or deleted.
type NodeFence struct {
	Metadata struct {
		Name        string            `json:"name"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
		Finalizers  []string          `json:"finalizers"`
	} `json:"metadata"`
	Status v1alpha1.NodeFenceStatus `json:"status"`
}

// node that the machine is or was.
func (n NodeFence) node() string { return cmp.Or(n.Status.NodeName, n.Metadata.Name) }

// NodeFenceFacts are who changes a NodeFence, and whether he may override gates.
type NodeFenceFacts struct {
	User        string
	MayOverride bool
	// Controller: it is Fairlead's own, whose label and finalizer these are.
	Controller bool
}

// maxReason is how long the reason of an override may be: events quote it, and take 1 KiB.
const maxReason = 512

// ValidateNodeFence judges the breaking of a node's glass: a gate and a reason,
// somebody whom RBAC allows the verb, and a record of this incident in his own
// name, which the mutating webhook writes. Taking the request away closes the
// gate, and anybody who may change the object may.
//
// The labels and the finalizer are the controller's: by one the API server finds
// the nodes whose volumes it holds while Fairlead is down, and by the other no
// record goes in the midst of an incident.
//
// Objects: NodeFences whose override, label or finalizer changes.
func ValidateNodeFence(n NodeFence, old *NodeFence, facts NodeFenceFacts) Verdict {
	v := Verdict{Reason: ReasonValid}
	var before NodeFence
	if old != nil {
		before = *old
	}
	if refuseOthersMeta(&v, n, before, facts); len(v.Problems) > 0 {
		return v
	}
	path := field.NewPath("metadata", "annotations")
	request, asked := n.Metadata.Annotations[fence.OverrideAnnotation]
	record := n.Metadata.Annotations[fence.OverriddenAnnotation]
	requestChanged := request != before.Metadata.Annotations[fence.OverrideAnnotation]
	recordChanged := record != before.Metadata.Annotations[fence.OverriddenAnnotation]
	gate, reason, wellFormed := fence.ParseOverride(request)
	switch {
	case !requestChanged && !recordChanged, !asked && !recordChanged:
		return v
	case !asked:
		v.refuse(ReasonOverride, field.Forbidden(path.Key(fence.OverriddenAnnotation), "is written by Fairlead and stays for the record: leave it as it is"))
	case !wellFormed:
		v.refuse(ReasonOverride, field.Invalid(path.Key(fence.OverrideAnnotation), request, fmt.Sprintf(
			"must be \"<gate>: <reason>\", with gate %s (the node is off: its volumes may be attached elsewhere), %s (let the node in although it has not booted anew) or %s (the out-of-service taint may come or go)",
			fence.GateAttach, fence.GateUnfence, fence.GateTaint)))
	case len(reason) > maxReason:
		v.refuse(ReasonOverride, field.TooLong(path.Key(fence.OverrideAnnotation), request, maxReason))
	case !facts.MayOverride:
		v.refuse(ReasonOverride, field.Forbidden(path.Key(fence.OverrideAnnotation), fmt.Sprintf(
			"%s may not override gates: that takes the verb %q on nodefences.fairlead.io (ClusterRole fairlead-fence-break-glass)", facts.User, fence.OverrideVerb)))
	case before.Status.Incident == "" && gate != fence.GateTaint:
		v.refuse(ReasonOverride, field.Forbidden(path.Key(fence.OverrideAnnotation), fmt.Sprintf(
			"there is nothing to override yet: node %s is in no incident, and gate %s is opened for one. Once it is %s, try again (kubectl get nodefence %s)",
			n.node(), gate, v1alpha1.NodeLost, n.Metadata.Name)))
	case requestChanged && !recordChanged && record != "" && fence.ReadOverride(n.Metadata.Annotations, before.Status).Gate != "":
		v.refuse(ReasonOverride, field.Forbidden(path.Key(fence.OverrideAnnotation),
			"this override was used before: give a new reason (and do not keep the annotation in files that are applied again)"))
	case record == "":
		v.refuse(ReasonOverride, field.Forbidden(path.Key(fence.OverrideAnnotation),
			"who overrides the gate was not written down: Fairlead's mutating webhook did not answer; try again"))
	default:
		// Of the incident as it is stored: a record of another would open the gate of the next loss.
		o := fence.ReadOverride(n.Metadata.Annotations, before.Status)
		if o.Gate != gate || o.By != facts.User {
			v.refuse(ReasonOverride, field.Forbidden(path.Key(fence.OverriddenAnnotation), "must be as Fairlead's mutating webhook writes it: leave it out"))
			break
		}
		v.Reason = ReasonOverridden
		v.Warnings = append(v.Warnings, fmt.Sprintf("gate %s of node %s is open for %s, in your name: %s", gate, n.node(), o.Scope, effect(gate, n.node())))
	}
	return v
}

// refuseOthersMeta keeps the label and the finalizer to the controller. Whoever may
// delete the record may take its finalizer off, once nothing is fenced any more.
func refuseOthersMeta(v *Verdict, n, before NodeFence, facts NodeFenceFacts) {
	if facts.Controller {
		return
	}
	metadata := field.NewPath("metadata")
	for _, l := range []struct{ label, use string }{
		{fence.PhaseLabel, "by it the API server finds the nodes whose volumes it holds while Fairlead is down"},
		{fence.NodeLabel, "by it Fairlead finds the machines that have or had a node's name"},
	} {
		if n.Metadata.Labels[l.label] != before.Metadata.Labels[l.label] {
			v.refuse(ReasonNotTheirs, field.Forbidden(metadata.Child("labels").Key(l.label), "is written by Fairlead's controller: "+l.use+"; leave it as it is"))
		}
	}
	has := slices.Contains(n.Metadata.Finalizers, fence.RecordFinalizer)
	forgets := !has && fence.ReadOverride(before.Metadata.Annotations, before.Status).Gate == fence.GateUnfence
	switch changed := has != slices.Contains(before.Metadata.Finalizers, fence.RecordFinalizer); {
	case changed && forgets && len(before.Status.Fences) > 0:
		v.refuse(ReasonNotTheirs, field.Forbidden(metadata.Child("finalizers"), fence.RecordFinalizer+" "+standing(n.Metadata.Name, before.Status)))
	case changed && !forgets:
		v.refuse(ReasonNotTheirs, field.Forbidden(metadata.Child("finalizers"), fmt.Sprintf(
			"%s comes and goes by Fairlead's controller: it keeps the only record of what the node held and of what is fenced, and goes when nothing of that is left. If the node never comes back: %s",
			fence.RecordFinalizer, fence.OverrideCommand(n.Metadata.Name, fence.GateUnfence))))
	}
}

// standing says what a record is still needed for though gate unfence is open. A
// NetworkFence is taken back by what is recorded: without it nobody does, and the
// addresses stay blocked for whoever gets them next.
func standing(node string, s v1alpha1.NodeFenceStatus) string {
	var names []string
	for _, f := range s.Fences {
		names = append(names, f.Name)
	}
	return fmt.Sprintf("stays until what is fenced is taken back (NetworkFence %s), or its addresses would be blocked for good. With gate %s open, Fairlead does so now, and forgets a node that is gone by itself. What it waits for says: kubectl get nodefence %s -o yaml",
		strings.Join(names, ", "), fence.GateUnfence, node)
}

// effect says what an open gate lets happen.
func effect(gate, node string) string {
	switch gate {
	case fence.GateAttach:
		return fmt.Sprintf("the volumes of node %s may be attached elsewhere though it is not fenced; if it still runs, they have two writers", node)
	case fence.GateUnfence:
		return fmt.Sprintf("node %s is let in again without having booted anew; what it still writes reaches the storage", node)
	default:
		return fmt.Sprintf("the out-of-service taint of node %s may come and go; Kubernetes then takes its volumes away without asking whether they are in use", node)
	}
}

// ValidateNodeFenceDeletion refuses to forget a node that is not Healthy: the
// NodeFence is all that is known of who held its volumes, and of what is blocked.
// Gate unfence lets it be forgotten, but not before nothing is blocked any more.
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
		v.refuse(ReasonNotForgotten, field.Forbidden(field.NewPath("status", "fences"), "the record of node "+n.node()+" "+standing(n.Metadata.Name, s)))
		return v
	}
	v.refuse(ReasonNotForgotten, field.Forbidden(field.NewPath("status", "phase"), fmt.Sprintf(
		"node %s is %s: this is the only record of the volumes that it held and of what is fenced. Wait until it is %s; Fairlead deletes the record of a node that is gone by itself, once nothing is held or fenced any more. If you must: %s",
		n.node(), s.Phase, v1alpha1.NodeHealthy, fence.OverrideCommand(n.Metadata.Name, fence.GateUnfence))))
	return v
}

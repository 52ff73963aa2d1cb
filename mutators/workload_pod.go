package mutators

import (
	"fmt"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/fairlead-io/fairlead/internal/fence"
)

// WorkloadPod is the view of a pod that may use volumes that Kubernetes does not attach.
type WorkloadPod struct {
	Metadata struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		NodeName        string `json:"nodeName"`
		SchedulingGates []struct {
			Name string `json:"name"`
		} `json:"schedulingGates"`
		Volumes []struct {
			Name                  string `json:"name"`
			PersistentVolumeClaim *struct {
				ClaimName string `json:"claimName"`
			} `json:"persistentVolumeClaim"`
			Ephemeral *struct{} `json:"ephemeral"`
		} `json:"volumes"`
	} `json:"spec"`
}

// Claims that the pod uses, by name, each once. The claim of an ephemeral volume has the names of the pod and the volume;
// the name of a new pod may be unknown.
func (p WorkloadPod) Claims() []string {
	var claims []string
	for _, v := range p.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			claims = append(claims, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil && p.Metadata.Name != "":
			claims = append(claims, p.Metadata.Name+"-"+v.Name)
		}
	}
	slices.Sort(claims)
	return slices.Compact(claims)
}

// HeldClaim is a claim whose volume a lost node holds.
type HeldClaim struct {
	Claim, Volume, Node string
}

// GateWorkloadPod keeps a pod from being scheduled while a lost node that is not fenced holds one of its volumes. The rule
// is for volumes that Kubernetes does not attach: they have no attachment to refuse. Pods with a node pass.
// Pods that may use such volumes are labelled, so that Fairlead finds them on their nodes.
//
// Objects: new pods that use claims, in namespaces with fence.OptInLabel.
func GateWorkloadPod(pod WorkloadPod, held []HeldClaim, unattached bool) Result {
	var labels []string
	if unattached {
		labels = append(labels, fence.UnattachedLabel)
	}
	if len(held) > 0 {
		labels = append(labels, fence.GatedLabel)
	}
	patch := addLabels(pod.Metadata.Labels, labels...)
	switch {
	case pod.Spec.NodeName != "":
		return unchanged(ReasonHasNode, pod.Spec.NodeName)
	case len(held) == 0 && len(patch) > 0:
		return mutated(ReasonUnattached, "", patch...)
	case len(held) == 0:
		return unchanged(ReasonNotHeld, "")
	}
	gates := pod.Spec.SchedulingGates
	gate := map[string]string{"name": fence.SchedulingGate}
	gated := false
	for _, g := range gates {
		gated = gated || g.Name == fence.SchedulingGate
	}
	switch {
	case gated:
	case len(gates) == 0:
		patch = append(patch, jsonpatch.NewOperation("add", "/spec/schedulingGates", []any{gate}))
	default:
		patch = append(patch, jsonpatch.NewOperation("add", "/spec/schedulingGates/-", gate))
	}
	if len(patch) == 0 {
		return unchanged(ReasonUpToDate, "")
	}
	var reasons []string
	for _, h := range held {
		reasons = append(reasons, fmt.Sprintf("volume %s of claim %s was last on node %s, which is lost and not fenced", h.Volume, h.Claim, h.Node))
	}
	result := mutated(ReasonGated, strings.Join(reasons, "; "), patch...)
	for i, reason := range reasons {
		result.Warnings = append(result.Warnings, fmt.Sprintf("the pod is not scheduled until the node is fenced: %s; see kubectl describe nodefence %s", reason, held[i].Node))
	}
	return result
}

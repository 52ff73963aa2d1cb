package mutators

import (
	"fmt"
	"time"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// NodeFence is the view of a NodeFence.
type NodeFence struct {
	Metadata struct {
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Status v1alpha1.NodeFenceStatus `json:"status"`
}

// OverrideFacts are the user who changes the object, and the time.
type OverrideFacts struct {
	User string
	Now  time.Time
}

// RecordNodeFenceOverride records who overrides which gate of a node, why and in which incident, and keeps that record.
// The validating webhook checks the record and the user's permission. The incident comes from the stored object: the
// status in a request is not stored.
//
// Objects: NodeFences whose fence.OverrideAnnotation or fence.OverriddenAnnotation is added, changed or removed.
func RecordNodeFenceOverride(n NodeFence, old *NodeFence, facts OverrideFacts) Result {
	var before NodeFence
	if old != nil {
		before = *old
	}
	is, was := n.Metadata.Annotations[fence.OverriddenAnnotation], before.Metadata.Annotations[fence.OverriddenAnnotation]
	request, oldRequest := n.Metadata.Annotations[fence.OverrideAnnotation], before.Metadata.Annotations[fence.OverrideAnnotation]
	want := was // kept when the object is replaced without it
	scope := fence.Scope(before.Status)
	gate, reason, wellFormed := fence.ParseOverride(request)
	if request != oldRequest && wellFormed && !overrideUsed(was, request, before.Status) {
		want = fence.Override{Gate: gate, By: facts.User, Reason: reason, Scope: scope, At: facts.Now.UTC().Truncate(time.Second)}.Text()
	}
	if want == is {
		return unchanged(ReasonUpToDate, "")
	}
	if want == "" { // forged, and there is no record to keep
		return mutated(ReasonOverrideKept, "", jsonpatch.NewOperation("remove", "/metadata"+annotationPath(fence.OverriddenAnnotation), nil))
	}
	operation := annotate("/metadata", n.Metadata.Annotations != nil, fence.OverriddenAnnotation, want)
	if want == was {
		return mutated(ReasonOverrideKept, "", operation)
	}
	return mutated(ReasonOverrideRecorded, fmt.Sprintf("gate %s of node %s by %s in %s: %s", gate, n.Metadata.Name, facts.User, scope, reason), operation)
}

// overrideUsed reports whether the record is of the same override in this incident. Removing and repeating a request
// does not make a new override.
func overrideUsed(record, request string, status v1alpha1.NodeFenceStatus) bool {
	return fence.ReadOverride(map[string]string{fence.OverrideAnnotation: request, fence.OverriddenAnnotation: record}, status).Gate != ""
}

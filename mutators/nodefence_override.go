package mutators

import (
	"fmt"
	"time"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// NodeFence is the view of a NodeFence whose override changes.
type NodeFence struct {
	Metadata struct {
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Status v1alpha1.NodeFenceStatus `json:"status"`
}

// OverrideFacts are who changes the object, and when.
type OverrideFacts struct {
	User string
	Now  time.Time
}

// RecordNodeFenceOverride writes down who overrides which gate of a node, why and
// in which incident, and keeps such a record from being lost. Whether he may is
// for the validating webhook, which sees what is written here. The incident is
// taken from the object as it is stored: what a request says of the status is
// not stored with it.
//
// Objects: NodeFences. Condition: fence.OverrideAnnotation or
// fence.OverriddenAnnotation comes, changes or goes.
func RecordNodeFenceOverride(n NodeFence, old *NodeFence, facts OverrideFacts) Result {
	var before NodeFence
	if old != nil {
		before = *old
	}
	is, was := n.Metadata.Annotations[fence.OverriddenAnnotation], before.Metadata.Annotations[fence.OverriddenAnnotation]
	request, asked := n.Metadata.Annotations[fence.OverrideAnnotation], before.Metadata.Annotations[fence.OverrideAnnotation]
	want := was // kept, whoever replaces the object without it
	scope := fence.Scope(before.Status)
	gate, reason, wellFormed := fence.ParseOverride(request)
	if request != asked && wellFormed && !overrideUsed(was, request, before.Status) {
		want = fence.Override{Gate: gate, By: facts.User, Reason: reason, Scope: scope, At: facts.Now.UTC().Truncate(time.Second)}.Text()
	}
	if want == is {
		return unchanged(ReasonAsItShouldBe, "")
	}
	if want == "" { // made up, and there is none to keep
		return mutated(ReasonOverrideKept, "", jsonpatch.NewOperation("remove", "/metadata"+annotationPath(fence.OverriddenAnnotation), nil))
	}
	operation := annotate("/metadata", n.Metadata.Annotations != nil, fence.OverriddenAnnotation, want)
	if want == was {
		return mutated(ReasonOverrideKept, "", operation)
	}
	return mutated(ReasonOverrideRecorded, fmt.Sprintf("gate %s of node %s by %s in %s: %s", gate, n.Metadata.Name, facts.User, scope, reason), operation)
}

// overrideUsed tells whether the record is of this very override, in this
// incident: taken away and given anew it is not another.
func overrideUsed(record, request string, status v1alpha1.NodeFenceStatus) bool {
	return fence.ReadOverride(map[string]string{fence.OverrideAnnotation: request, fence.OverriddenAnnotation: record}, status).Gate != ""
}

package mutators

import (
	"fmt"
	"time"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/fairlead-io/fairlead/internal/fence"
)

// NodeFence is the view of a NodeFence.
type NodeFence struct {
	Metadata struct {
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
}

// OverrideFacts are the user who changes the object, and the time.
type OverrideFacts struct {
	User string
	Now  time.Time
}

// RecordNodeFenceOverride records who asks to override which gate of a boot, and why. The validating webhook checks the record and
// the user's permission; the controller carries the request out once, and removes it.
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
	gate, reason, wellFormed := fence.ParseOverride(request)
	switch {
	case request == "":
		want = ""
	case request != oldRequest && wellFormed:
		want = fence.Request{Gate: gate, By: facts.User, Reason: reason, At: facts.Now.UTC().Truncate(time.Second)}.Text()
	}
	if want == is {
		return unchanged(ReasonUpToDate, "")
	}
	if want == "" { // forged, or of a request that is gone
		return mutated(ReasonOverrideKept, "", jsonpatch.NewOperation("remove", "/metadata"+annotationPath(fence.OverriddenAnnotation), nil))
	}
	operation := annotate("/metadata", n.Metadata.Annotations != nil, fence.OverriddenAnnotation, want)
	if want == was {
		return mutated(ReasonOverrideKept, "", operation)
	}
	return mutated(ReasonOverrideRecorded, fmt.Sprintf("gate %s of NodeFence %s by %s: %s", gate, n.Metadata.Name, facts.User, reason), operation)
}

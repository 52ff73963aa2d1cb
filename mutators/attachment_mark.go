package mutators

import (
	"gomodules.xyz/jsonpatch/v2"

	"github.com/fairlead-io/fairlead/internal/fence"
)

// Attachment is the view of a VolumeAttachment.
type Attachment struct {
	Metadata struct {
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
}

// MarkAttachment marks an attachment as checked by Fairlead's webhooks. The API server checks attachments without the mark
// by its own policies.
//
// Objects: new VolumeAttachments of protected drivers.
func MarkAttachment(a Attachment) Result {
	labels := a.Metadata.Labels
	switch {
	case labels[fence.JudgedLabel] == "true":
		return unchanged(ReasonUpToDate, "")
	case labels == nil:
		return mutated(ReasonMarked, "", jsonpatch.NewOperation("add", "/metadata/labels", map[string]string{fence.JudgedLabel: "true"}))
	}
	return mutated(ReasonMarked, "", jsonpatch.NewOperation("add", "/metadata/labels/"+pointer.Replace(fence.JudgedLabel), "true"))
}

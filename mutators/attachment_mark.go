package mutators

import "github.com/fairlead-io/fairlead/internal/fence"

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
	if patch := addLabels(a.Metadata.Labels, fence.JudgedLabel); patch != nil {
		return mutated(ReasonMarked, "", patch...)
	}
	return unchanged(ReasonUpToDate, "")
}

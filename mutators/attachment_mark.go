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
	if a.Metadata.Labels[fence.JudgedLabel] == "true" {
		return unchanged(ReasonUpToDate, "")
	}
	return mutated(ReasonMarked, "", label("/metadata", a.Metadata.Labels != nil, fence.JudgedLabel, "true"))
}

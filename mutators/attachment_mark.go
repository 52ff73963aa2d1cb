package mutators

import "github.com/fairlead-io/fairlead/internal/fence"

// Attachment is what is read of a VolumeAttachment to mark it.
type Attachment struct {
	Metadata struct {
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
}

// MarkAttachment marks an attachment for Fairlead's validating webhook. The API server judges attachments without the
// mark by its own policies.
//
// Objects: new VolumeAttachments of protected drivers.
func MarkAttachment(a Attachment) Result {
	if a.Metadata.Labels[fence.JudgedLabel] == "true" {
		return unchanged(ReasonAsItShouldBe, "")
	}
	return mutated(ReasonMarked, "", label("/metadata", a.Metadata.Labels != nil, fence.JudgedLabel, "true"))
}

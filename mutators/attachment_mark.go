package mutators

import "github.com/fairlead-io/fairlead/fence"

// Attachment is what is read of a VolumeAttachment to mark it.
type Attachment struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
}

// MarkAttachment says that Fairlead is awake, and that its validating webhook is
// to judge the attachment. Without the mark the API server judges by itself.
//
// Objects: new VolumeAttachments of protected drivers.
func MarkAttachment(a Attachment) Result {
	if a.Metadata.Annotations[fence.JudgedAnnotation] == "true" {
		return unchanged(ReasonAsItShouldBe, "")
	}
	return mutated(ReasonMarked, "", annotate("/metadata", a.Metadata.Annotations != nil, fence.JudgedAnnotation, "true"))
}

package mutators

import (
	"iter"
	"maps"
)

// AnnotationKeys of the pod that rules do not read.
func (m Metadata) AnnotationKeys() iter.Seq[string] {
	if m.Annotations == nil {
		return maps.Keys(map[string]string(nil))
	}
	return maps.Keys(m.Annotations.Others)
}

// AnnotationKeys of the pod.
func (p ClientPod) AnnotationKeys() iter.Seq[string] { return p.Metadata.AnnotationKeys() }
func (p ServerPod) AnnotationKeys() iter.Seq[string] { return p.Metadata.AnnotationKeys() }

// AnnotationKeys of pods of the template.
func (t ClientTemplate) AnnotationKeys() iter.Seq[string] {
	return t.Spec.Template.Metadata.AnnotationKeys()
}

// AnnotationKeys of the Service.
func (s Service) AnnotationKeys() iter.Seq[string] { return maps.Keys(s.Metadata.Annotations) }

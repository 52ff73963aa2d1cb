package mutators

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"strings"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

// Metadata is the view of a pod's metadata. Single annotations instead of a map keep the decoding of large pods cheap.
type Metadata struct {
	Annotations *PodAnnotations `json:"annotations"`
}

// PodAnnotations are the annotations that rules on pods read.
type PodAnnotations struct {
	Networks string `json:"k8s.v1.cni.cncf.io/networks"`
	OptOut   string `json:"fairlead.io/opt-out"`
	// Others are read only for misspelled keys. The option "embed" is of go-json-experiment/json, which decodes reviews.
	Others map[string]string `json:",embed"`
}

// PodSpec is the view of a pod's spec.
type PodSpec struct {
	HostNetwork bool `json:"hostNetwork"`
}

// setNetworks sets the networks annotation of a pod in Longhorn's namespace, under the metadata at path, to exactly
// these places. Networks on interface names that are not Longhorn's stay. If a place can't be added, the others are:
// warnings say which could not.
func setNetworks(path string, meta Metadata, spec PodSpec, names longhorn.Names, places []multus.Placement, why string) Result {
	annotations := PodAnnotations{}
	if meta.Annotations != nil {
		annotations = *meta.Annotations
	}
	switch {
	case len(places) == 0 && (annotations.Networks == "" || annotations.OptOut == "true" || spec.HostNetwork):
		return unchanged(ReasonNoNetwork, why)
	case annotations.OptOut == "true":
		return skipped(ReasonOptOut, fmt.Sprintf("annotation %s keeps network %s off", rwx.OptOutAnnotation, named(places)))
	case spec.HostNetwork:
		return skipped(ReasonHostNetwork, fmt.Sprintf("Multus adds no interface to pods on the host network; set hostNetwork to false to join %s", named(places)))
	}
	merged, err := multus.KeepManaged(annotations.Networks, names.Namespace, names.Interfaces(), attachments(places)...)
	if err != nil {
		if len(places) == 0 {
			return unchanged(ReasonNoNetwork, why)
		}
		return cannotAdd(places[0], err)
	}
	removed := merged != annotations.Networks
	var added []multus.Placement
	var failed []Result
	for _, p := range places {
		more, err := multus.AddPlacement(merged, names.Namespace, p)
		if err != nil {
			failed = append(failed, cannotAdd(p, err))
		} else if more != merged {
			merged, added = more, append(added, p)
		}
	}
	write := annotate(path, meta.Annotations != nil, multus.NetworksAnnotation, merged)
	if merged == "" {
		write = jsonpatch.NewOperation("remove", path+annotationPath(multus.NetworksAnnotation), nil)
	}
	switch {
	case len(added) > 0 && removed:
		return mutated(ReasonNetworkReplaced, named(added)+": "+why, write).withWarnings(failed...)
	case len(added) > 0:
		return mutated(ReasonNetworkAdded, named(added)+": "+why, write).withWarnings(failed...)
	case removed:
		return mutated(ReasonNetworkRemoved, why, write).withWarnings(failed...)
	case len(failed) > 0:
		return failed[0].withWarnings(failed[1:]...)
	case len(places) == 0:
		return unchanged(ReasonNoNetwork, why)
	}
	return unchanged(ReasonUpToDate, "requests "+named(places))
}

func cannotAdd(p multus.Placement, err error) Result {
	if clash := (*multus.ClashError)(nil); errors.As(err, &clash) {
		return skipped(ReasonClash, fmt.Sprintf("%v; rename the interface of that network so that %s can be added", clash, p.Network))
	}
	if errors.Is(err, multus.ErrOtherIdentity) {
		return skipped(ReasonOtherAddresses, fmt.Sprintf("network %s %v; remove these addresses so that the volume keeps its own", p.Network, err))
	}
	return skipped(ReasonUnreadable, fmt.Sprintf("annotation %s: %v", multus.NetworksAnnotation, err))
}

func named(places []multus.Placement) string {
	names := make([]string, len(places))
	for i, p := range places {
		names[i] = p.Network.String()
	}
	return strings.Join(names, ", ")
}

// joining are the places of the networks, without the cluster network, which every pod has.
func joining(networks ...multus.Attachment) []multus.Placement {
	places := make([]multus.Placement, 0, len(networks))
	for _, n := range networks {
		if !n.IsZero() {
			places = append(places, multus.Placement{Network: n})
		}
	}
	return places
}

func attachments(places []multus.Placement) []multus.Attachment {
	list := make([]multus.Attachment, len(places))
	for i, p := range places {
		list[i] = p.Network
	}
	return list
}

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

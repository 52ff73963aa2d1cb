package mutators

import (
	"errors"
	"fmt"
	"slices"

	"github.com/fairlead-io/fairlead/storage"
)

// Metadata is what rules on pods read of metadata. Single annotations instead
// of a map keep the decoding of a large pod cheap.
type Metadata struct {
	Annotations *PodAnnotations `json:"annotations"`
}

// PodAnnotations are the annotations that rules on pods read.
type PodAnnotations struct {
	Networks string `json:"k8s.v1.cni.cncf.io/networks"`
	OptOut   string `json:"fairlead.io/opt-out"`
}

// PodSpec is what rules on pods read of a pod's spec.
type PodSpec struct {
	HostNetwork bool `json:"hostNetwork"`
}

// asks tells whether the metadata asks for the network.
func asks(meta Metadata, namespace string, network storage.Attachment) bool {
	if meta.Annotations == nil {
		return false
	}
	selections, err := storage.ParseSelections(meta.Annotations.Networks, namespace)
	return err == nil && slices.Contains(selections, network)
}

// addNetwork merges the network into the networks annotation under the metadata at path.
func addNetwork(path string, meta Metadata, spec PodSpec, namespace string, network storage.Attachment, why string) Result {
	annotations := PodAnnotations{}
	if meta.Annotations != nil {
		annotations = *meta.Annotations
	}
	switch {
	case network.IsZero():
		return unchanged(ReasonNoNetwork, why)
	case annotations.OptOut == "true":
		return skipped(ReasonOptOut, fmt.Sprintf("annotation %s keeps network %s off", storage.OptOutAnnotation, network))
	case spec.HostNetwork:
		return skipped(ReasonHostNetwork, fmt.Sprintf("Multus adds no interface to pods on the host network; set hostNetwork to false to join %s", network))
	}
	merged, err := storage.AddNetwork(annotations.Networks, namespace, network)
	if clash := (*storage.ClashError)(nil); errors.As(err, &clash) {
		return skipped(ReasonClash, fmt.Sprintf("%v; give it another interface name so that %s can have it", clash, network))
	}
	if err != nil {
		return skipped(ReasonUnreadable, fmt.Sprintf("annotation %s: %v", storage.NetworksAnnotation, err))
	}
	if merged == annotations.Networks {
		return unchanged(ReasonAsItShouldBe, "asks for "+network.String())
	}
	return mutated(ReasonNetworkAdded, fmt.Sprintf("%s: %s", network, why),
		annotate(path, meta.Annotations != nil, storage.NetworksAnnotation, merged))
}

package mutators

import (
	"errors"
	"fmt"
	"slices"
	"strings"

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
	// Tolerations are those that the storage system has from a setting, as JSON.
	Tolerations string `json:"longhorn.io/last-applied-tolerations"`
	// Others are read only for misspelled keys.
	//lint:ignore SA5008 "embed" is an option of go-json-experiment/json, which decodes reviews
	Others map[string]string `json:",embed"`
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

// addNetworks merges the networks into the networks annotation under the metadata
// at path. One that can't be added keeps no other off: it is told.
func addNetworks(path string, meta Metadata, spec PodSpec, namespace string, places []storage.Placement, why string) Result {
	annotations := PodAnnotations{}
	if meta.Annotations != nil {
		annotations = *meta.Annotations
	}
	switch {
	case len(places) == 0:
		return unchanged(ReasonNoNetwork, why)
	case annotations.OptOut == "true":
		return skipped(ReasonOptOut, fmt.Sprintf("annotation %s keeps network %s off", storage.OptOutAnnotation, named(places)))
	case spec.HostNetwork:
		return skipped(ReasonHostNetwork, fmt.Sprintf("Multus adds no interface to pods on the host network; set hostNetwork to false to join %s", named(places)))
	}
	merged := annotations.Networks
	var added []storage.Placement
	var failed []Result
	for _, p := range places {
		more, err := storage.AddPlacement(merged, namespace, p)
		if err != nil {
			failed = append(failed, cannotAdd(p, err))
		} else if more != merged {
			merged, added = more, append(added, p)
		}
	}
	switch {
	case len(added) > 0:
		result := mutated(ReasonNetworkAdded, named(added)+": "+why, annotate(path, meta.Annotations != nil, storage.NetworksAnnotation, merged))
		return result.but(failed...)
	case len(failed) > 0:
		return failed[0].but(failed[1:]...)
	}
	return unchanged(ReasonAsItShouldBe, "asks for "+named(places))
}

func cannotAdd(p storage.Placement, err error) Result {
	if clash := (*storage.ClashError)(nil); errors.As(err, &clash) {
		return skipped(ReasonClash, fmt.Sprintf("%v; give it another interface name so that %s can have it", clash, p.Network))
	}
	if errors.Is(err, storage.ErrOtherIdentity) {
		return skipped(ReasonOtherAddresses, fmt.Sprintf("network %s %v; take them away so that the volume keeps its own", p.Network, err))
	}
	return skipped(ReasonUnreadable, fmt.Sprintf("annotation %s: %v", storage.NetworksAnnotation, err))
}

func named(places []storage.Placement) string {
	names := make([]string, len(places))
	for i, p := range places {
		names[i] = p.Network.String()
	}
	return strings.Join(names, ", ")
}

// joining are the networks, without the cluster network, which needs no asking for.
func joining(networks ...storage.Attachment) []storage.Placement {
	places := make([]storage.Placement, 0, len(networks))
	for _, n := range networks {
		if !n.IsZero() {
			places = append(places, storage.Placement{Network: n})
		}
	}
	return places
}

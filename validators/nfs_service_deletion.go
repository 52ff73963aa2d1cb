package validators

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// NFSMount is a volume of an NFSService on a node.
type NFSMount struct{ Node, PersistentVolume string }

// NFSServiceUse has the users of an NFSService, read live.
type NFSServiceUse struct {
	// Mounts are the VolumeAttachments of its volumes, by node.
	Mounts []NFSMount
	// Volumes are its PersistentVolumes.
	Volumes []string
}

// ValidateNFSServiceDeletion refuses to delete an NFSService whose volumes are attached: without its ClusterIPs, the
// mounts on these nodes would hang. It warns of PersistentVolumes that are attached nowhere.
//
// Objects: NFSServices that are deleted, other than by Kubernetes' garbage collection.
// Source: nfs(5), hard: a mount whose server is gone waits forever.
func ValidateNFSServiceDeletion(s NFSService, use NFSServiceUse) Verdict {
	v := Verdict{Reason: ReasonValid}
	name := s.Metadata.Namespace + "/" + s.Metadata.Name
	var nodes []string
	for _, m := range use.Mounts {
		nodes = append(nodes, m.Node)
	}
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	switch {
	case len(nodes) > 0:
		v.refuse(ReasonNFSServiceInUse, field.Forbidden(field.NewPath("status", "nodes"), fmt.Sprintf(
			"volumes of NFSService %s are attached to %s: %s. Their mounts would hang without its addresses. Delete the pods that use these volumes, wait until the VolumeAttachments are gone, then delete the NFSService; fairlead nfs %s lists the nodes",
			name, catalog.Count(len(nodes), "node"), firstMounts(use.Mounts), name)))
	case len(use.Volumes) > 0:
		v.warn("NFSService %s still has %s: %s. Pods that use them wait until an NFSService of this name exists again", name, catalog.Count(len(use.Volumes), "PersistentVolume"), catalog.FirstOf(use.Volumes))
	}
	return v
}

func firstMounts(mounts []NFSMount) string {
	var texts []string
	for _, m := range mounts {
		texts = append(texts, fmt.Sprintf("%s (%s)", m.Node, m.PersistentVolume))
	}
	return catalog.FirstOf(texts)
}

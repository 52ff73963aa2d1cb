package validators

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/spec"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// NFSService is the view of an NFSService that is changed or deleted.
type NFSService struct {
	Metadata struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
	Spec   v1alpha1.NFSServiceSpec   `json:"spec"`
	Status v1alpha1.NFSServiceStatus `json:"status"`
}

func (s NFSService) object() *v1alpha1.NFSService {
	return &v1alpha1.NFSService{ObjectMeta: metav1.ObjectMeta{Namespace: s.Metadata.Namespace, Name: s.Metadata.Name}, Spec: s.Spec, Status: s.Status}
}

// ChangesPort reports whether an update changes the port that clients mount.
func (s NFSService) ChangesPort(old NFSService) bool {
	return spec.PortOf(s.object()) != spec.PortOf(old.object())
}

// ValidateNFSService checks what the schema of NFSServices does not: addresses, shares, mount options, and that the port stays
// while nodes have the service mounted (mounted, read live). It warns if an update removes
// or drains a backend that nodes of exposure PerNode have mounted.
//
// The webhook may fail open: the controller checks the spec with the same function, and the schema always holds.
//
// Objects: NFSServices whose spec changes.
// Source: "GKE NFS LoadBalancer CSI driver for Kubernetes" (which only checks that --ip-addresses is set); NFSServiceSpec.
func ValidateNFSService(s NFSService, old *NFSService, mounted bool) Verdict {
	v := Verdict{Reason: ReasonValid}
	_, problems := spec.Read(s.object())
	if old != nil {
		problems = append(problems, spec.CheckUpdate(old.object(), s.object(), mounted)...)
		v.Warnings = spec.UpdateWarnings(old.object(), s.object())
	}
	if len(problems) > 0 {
		v.refuse(ReasonInvalidNFSService, fieldErrors(problems)...)
	}
	return v
}

// fieldErrors are problems in the API server's form.
func fieldErrors(problems nfs.Problems) field.ErrorList {
	var errors field.ErrorList
	for _, p := range problems {
		// The message has the value if it helps.
		errors = append(errors, field.Invalid(field.NewPath(p.Field), field.OmitValueType{}, p.Message))
	}
	return errors
}

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

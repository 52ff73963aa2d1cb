package validators

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/definition"
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
	return definition.PortOf(s.object()) != definition.PortOf(old.object())
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
	_, problems := definition.Read(s.object())
	if old != nil {
		problems = append(problems, definition.CheckUpdate(old.object(), s.object(), mounted)...)
		v.Warnings = definition.UpdateWarnings(old.object(), s.object())
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

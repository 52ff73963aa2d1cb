package frontend

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// PublisherRole is the ClusterRole (manifests/components/csi-controller) that a RoleBinding grants in each namespace with
// NFSServices.
const PublisherRole = "fairlead-csi-publisher"

// withCommand adds the command that grants a missing right. Admission refuses with the same code, and other words
// (k8s.io/apiserver pkg/endpoints/handlers/responsewriters/errors.go).
func withCommand(err error, namespace string) error {
	if err == nil || !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), " cannot ") {
		return err
	}
	return fmt.Errorf("no right to publish in namespace %[1]s: an administrator grants that with kubectl -n %[1]s create rolebinding %[2]s --clusterrole=%[2]s --serviceaccount=fairlead-system:fairlead-csi-controller (%[3]w)", namespace, PublisherRole, err)
}

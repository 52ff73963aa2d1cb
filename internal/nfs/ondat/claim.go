package ondat

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// CheckClaim compares the PVC that the volume names with the volume. claim is nil if
// there is none. hasService says that the PVC has the volume's Service already: a PVC
// that is being deleted lives on while a pod uses it, and its Service with it.
//
// The released manager did not look (api-manager, toSharedVolume): a PVC of that name
// that is bound to another PV became the owner.
func (f Finding) CheckClaim(claim *corev1.PersistentVolumeClaim, hasService bool) (reason Reason, message string) {
	title := fmt.Sprintf("PersistentVolumeClaim %s/%s of %s", f.Namespace, f.PVC, f.Title())
	switch {
	case claim == nil:
		return ClaimMissing, title + " does not exist: nothing is published until it does"
	case claim.Spec.VolumeName == "", claim.Spec.VolumeName == f.PV && claim.Status.Phase != corev1.ClaimBound && !hasService:
		return ClaimNotBound, fmt.Sprintf("%s is not bound: nothing is published until it is bound to PersistentVolume %s", title, f.PV)
	case claim.Spec.VolumeName != f.PV:
		return ClaimNotBound, fmt.Sprintf("%s is bound to PersistentVolume %s, and the volume belongs to PersistentVolume %s: nothing is published for it", title, claim.Spec.VolumeName, f.PV)
	case claim.DeletionTimestamp != nil && !hasService:
		return ClaimTerminating, title + " is being deleted: no Service is created for it"
	}
	return "", ""
}

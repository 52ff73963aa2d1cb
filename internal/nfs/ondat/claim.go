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
func (f Finding) CheckClaim(claim *corev1.PersistentVolumeClaim, hasService bool) error {
	title := fmt.Sprintf("PersistentVolumeClaim %s/%s of %s", f.Namespace, f.PVC, f.Title())
	switch {
	case claim == nil:
		return Refuse(ClaimMissing, "%s does not exist: nothing is published until it does", title)
	case claim.Spec.VolumeName == "", claim.Spec.VolumeName == f.PV && claim.Status.Phase != corev1.ClaimBound && !hasService:
		return Refuse(ClaimNotBound, "%s is not bound: nothing is published until it is bound to PersistentVolume %s", title, f.PV)
	case claim.Spec.VolumeName != f.PV:
		return Refuse(ClaimNotBound, "%s is bound to PersistentVolume %s, and the volume belongs to PersistentVolume %s: nothing is published for it", title, claim.Spec.VolumeName, f.PV)
	case claim.DeletionTimestamp != nil && !hasService:
		return Refuse(ClaimTerminating, "%s is being deleted: no Service is created for it", title)
	}
	return nil
}

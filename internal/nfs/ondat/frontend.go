package ondat

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/publish"
)

// Naming of Services.
type Naming string

const (
	// ByPVC as the proposal has it.
	ByPVC Naming = "PVC"
	// ByPV as the released manager does.
	ByPV Naming = "PV"
)

// Frontend decides where a served volume is published: one backend, under an address
// that stays for the life of the PVC. claim is nil if there is none. owned are the
// Services that the PVC owns for volumes that exist, whatever their names: the released
// manager, or another setting of ondat.serviceName, may have created them.
func (f Finding) Frontend(claim *corev1.PersistentVolumeClaim, owned []corev1.Service, by Naming) (publish.Frontend, error) {
	own, err := f.ownService(owned)
	if err == nil {
		err = f.checkClaim(claim, own != nil)
	}
	address, name := f.RecordedIP(), ""
	if err == nil && own == nil {
		name, err = f.serviceName(by)
	}
	if err != nil {
		return publish.Frontend{}, err
	}
	if own != nil {
		name = own.Name
		if has, err := netip.ParseAddr(own.Spec.ClusterIP); err == nil && !address.IsValid() {
			address = has.Unmap()
		}
	}
	want := f.frontend(f.Namespace, name, metav1.OwnerReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Name: claim.Name, UID: claim.UID})
	want.ClusterIP, want.Backend, want.TargetPort = address, f.Server, f.Server.Port()
	return want, nil
}

// Withdrawn is the frontend of a Service of the volume while there is no server to
// lead to. The Service and its ClusterIP stay: they belong to the PVC. ok is false if
// the Service has another owner, or is being deleted.
func (f Finding) Withdrawn(s *corev1.Service) (want publish.Frontend, ok bool) {
	address, err := netip.ParseAddr(s.Spec.ClusterIP)
	for _, o := range s.OwnerReferences {
		if o.Kind == "PersistentVolumeClaim" && err == nil && s.DeletionTimestamp == nil {
			want, ok = f.frontend(s.Namespace, s.Name, o), true
		}
	}
	want.ClusterIP = address.Unmap()
	if len(s.Spec.Ports) == 1 { // it stays until there is another server
		want.TargetPort = uint16(s.Spec.Ports[0].TargetPort.IntVal)
	}
	return want, ok
}

func (f Finding) frontend(namespace, name string, owner metav1.OwnerReference) publish.Frontend {
	return publish.Frontend{
		Namespace: namespace, Name: name, Slot: -1, Service: ServiceLabelValue(f.ID), Labels: map[string]string{VolumeIDLabel: f.ID},
		Port: nfs.DefaultPort, Owner: owner,
	}
}

// ServiceLabelValue is the value of label fairlead.io/nfs-service on the objects of a
// volume. The underscore keeps it apart from the name of any NFSService.
func ServiceLabelValue(id string) string { return "ondat_" + id }

// ownService is the volume's among the Services of its PVC; if there are two, the one
// with the published address. A PVC serves one volume.
func (f Finding) ownService(owned []corev1.Service) (own *corev1.Service, err error) {
	for i := range owned {
		s := &owned[i]
		if id := s.Labels[VolumeIDLabel]; id != f.ID {
			err = Refuse("ClaimOfTwoVolumes", "%s is not published: PersistentVolumeClaim %s/%s has Service %s for Ondat volume %s: delete the volume that is not in use", f.Title(), f.Namespace, f.PVC, s.Name, id)
		} else if own == nil || s.Spec.ClusterIP == f.RecordedIP().String() {
			own = s
		}
	}
	if own != nil {
		return own, nil
	}
	return nil, err
}

// checkClaim compares the PVC that the volume names with the volume. A PVC that is
// being deleted lives on while a pod uses it, and its Service with it.
//
// The released manager did not look (api-manager, toSharedVolume): a PVC of that name
// that is bound to another PV became the owner.
func (f Finding) checkClaim(claim *corev1.PersistentVolumeClaim, hasService bool) error {
	title := fmt.Sprintf("PersistentVolumeClaim %s/%s of %s", f.Namespace, f.PVC, f.Title())
	switch {
	case claim == nil:
		return Refuse("ClaimMissing", "%s does not exist: nothing is published until it does", title)
	case claim.Spec.VolumeName == "", claim.Spec.VolumeName == f.PV && claim.Status.Phase != corev1.ClaimBound && !hasService:
		return Refuse("ClaimNotBound", "%s is not bound: nothing is published until it is bound to PersistentVolume %s", title, f.PV)
	case claim.Spec.VolumeName != f.PV:
		return Refuse("ClaimNotBound", "%s is bound to PersistentVolume %s, and the volume belongs to PersistentVolume %s: nothing is published for it", title, claim.Spec.VolumeName, f.PV)
	case claim.DeletionTimestamp != nil && !hasService:
		return Refuse("ClaimTerminating", "%s is being deleted: no Service is created for it", title)
	}
	return nil
}

// serviceName is the name of the volume's Service. The name of a PVC may be longer
// than a Service's, hold dots or begin with a digit; the other name is used then.
func (f Finding) serviceName(by Naming) (string, error) {
	names := []string{f.PVC, f.PV}
	if by == ByPV {
		names = []string{f.PV, f.PVC}
	}
	for _, name := range names {
		if len(validation.IsDNS1035Label(name)) == 0 {
			return name, nil
		}
	}
	return "", Refuse("InvalidName", "neither PersistentVolumeClaim %s nor PersistentVolume %s has a name that a Service can have: use a name of at most 63 letters, digits and dashes that begins with a letter", f.PVC, f.PV)
}

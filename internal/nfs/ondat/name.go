package ondat

import (
	"k8s.io/apimachinery/pkg/util/validation"
)

// Naming of Services.
type Naming string

const (
	// ByPVC as the proposal has it.
	ByPVC Naming = "PVC"
	// ByPV as the released manager does.
	ByPV Naming = "PV"
)

// ServiceName is the name of the volume's Service. The name of a PVC may be longer
// than a Service's, hold dots or begin with a digit; the other name is used then.
func (f Finding) ServiceName(by Naming) (string, error) {
	first, second := f.PVC, f.PV
	if by == ByPV {
		first, second = f.PV, f.PVC
	}
	for _, name := range []string{first, second} {
		if len(validation.IsDNS1035Label(name)) == 0 {
			return name, nil
		}
	}
	return "", Refuse(InvalidName, "neither PersistentVolumeClaim %s nor PersistentVolume %s has a name that a Service can have: use a name of at most 63 letters, digits and dashes that begins with a letter", f.PVC, f.PV)
}

package pools

import (
	"cmp"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
	"github.com/fairlead-io/fairlead/internal/nfs/spec"
)

// Targets are the servers in a service's status, with the addresses by which nodes reach them. Only recorded addresses are
// assigned.
func Targets(service *v1alpha1.NFSService) []assign.Target {
	exposure := nfs.Exposure(cmp.Or(service.Spec.Exposure, string(nfs.PerNodeStable)))
	status := &service.Status
	return spec.Targets(exposure, status, spec.Members(status), spec.Slots(status), uint16(spec.PortOf(service)))
}

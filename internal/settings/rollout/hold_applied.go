package rollout

import (
	"fmt"

	"github.com/fairlead-io/fairlead/internal/storage"
)

// HoldsApplied says why the storage system's setting that chooses the network for
// RWX volumes must not count as applied yet, or "". value is the network that the
// storage system's own settings name.
//
// Longhorn deletes the Service of a volume when it creates the server pod again,
// if that Service is not of the kind that the value asks for and the settings
// count as applied. The cluster IP that workloads have mounted would go with it.
//
// Source: longhorn-manager v1.7.2 and v1.12.0 controller/share_manager_controller.go,
// canCleanupService.
func HoldsApplied(value storage.Attachment, record Record, services []storage.Service, volumes []storage.Volume) string {
	if value.IsZero() || record.Unknown {
		return ""
	}
	attached := map[string]bool{}
	for _, v := range volumes {
		attached[v.Name] = v.Shared && v.Attached
	}
	for _, s := range services {
		if attached[s.Volume] && !s.Headless() && !s.OptOut {
			return fmt.Sprintf("volume %s is attached and has a cluster IP", s.Volume)
		}
	}
	if record.Servers.IsZero() {
		return "Services of new volumes have a cluster IP until every CSI plugin pod is on the network"
	}
	return ""
}

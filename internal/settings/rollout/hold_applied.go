package rollout

import (
	"fmt"

	"github.com/fairlead-io/fairlead/internal/storage"
)

// HoldsApplied says why the storage system's setting of the network for RWX volumes must not be
// reported as applied, or "". value is the network by the storage system's own settings.
//
// If the settings are applied, Longhorn deletes a Service of the wrong kind when it recreates the
// server pod. Workloads would lose the cluster IP that they have mounted.
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

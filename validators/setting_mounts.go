package validators

import (
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// warnOfMounts: Longhorn mounts in the CSI plugin pod or on the node by the values of its settings, before the values are
// applied. New mounts on nodes do not reach a volume that is still served on a storage network.
//
// Objects: settings.longhorn.io that choose the network for RWX volumes.
// Condition: mounts move to the node, and attached RWX volumes are served on the network.
// Source: longhorn-manager v1.7.2 csi/node_server.go, requireHostNamespaceMounter; seen with v1.7.2.
func (v *Verdict) warnOfMounts(before, after SettingFacts) {
	was, is := rollout.MountPlace(before.SystemValues, before.Names), rollout.MountPlace(after.SystemValues, after.Names)
	if was == is {
		return
	}
	missed := map[string]bool{}
	for i := range before.Rollout.Services {
		service := &before.Rollout.Services[i]
		missed[service.Volume] = rollout.MountsMiss(service, before.Rollout.Record.Clients, is)
	}
	var volumes []string
	for _, volume := range before.Rollout.Volumes {
		if volume.Shared && volume.Attached && missed[volume.Name] {
			volumes = append(volumes, volume.Name)
		}
	}
	if len(volumes) > 0 {
		v.warn("%s now mounts over the node's network. Pods that start cannot mount %s until all workloads of the volume are stopped and the volume is detached; existing mounts stay",
			longhorn.Name, catalog.FirstOf(volumes))
	}
}

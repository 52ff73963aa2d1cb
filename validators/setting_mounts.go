package validators

import (
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// warnOfMounts: Longhorn mounts in the CSI plugin pod or on the node by the values of its settings, before they are
// applied. A volume that is served on a storage network is out of reach of new mounts on nodes until it has left the network.
//
// Objects: settings.longhorn.io that choose the network for RWX volumes.
// Condition: the place becomes the node, and attached RWX volumes are served on the network.
// Source: longhorn-manager v1.7.2 csi/node_server.go, requireHostNamespaceMounter; seen beside v1.7.2.
func (v *Verdict) warnOfMounts(before, after SettingFacts) {
	was, is := rollout.MountPlace(before.SystemValues, before.Profile), rollout.MountPlace(after.SystemValues, after.Profile)
	if was == is {
		return
	}
	missed := map[string]bool{}
	for i := range before.Rollout.Services {
		service := &before.Rollout.Services[i]
		missed[service.Volume] = rollout.MountsMiss(service, before.Rollout.Record.Clients, is)
	}
	var volumes []string
	for _, volume := range before.Volumes {
		if volume.Shared && volume.Attached && missed[volume.Name] {
			volumes = append(volumes, volume.Name)
		}
	}
	if len(volumes) > 0 {
		v.warn("%s mounts from the node's network from now on. Pods that start cannot mount %s until all workloads of the volume have been stopped and the volume was detached; mounts that are there stay",
			before.Profile.Name, catalog.FirstOf(volumes))
	}
}

package validators

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/planner"
)

// refuseLeaving keeps storage-network on the network of instance managers in use. Longhorn finds the addresses of running
// replicas by the setting's value, before the value is applied. Without these addresses, attached volumes fault within
// seconds.
//
// Objects: settings.longhorn.io storage-network.
// Condition: a volume is attached, and an instance manager on the old network runs an instance, or may soon run one: a
// volume that is being attached has no instance yet. A waiting change can be taken back until an instance manager on the
// new network is in use.
// Source: longhorn-manager datastore/kubernetes.go, GetStorageIPFromPod (v1.7.2, v1.8.1,
// v1.10.0) and GetIPFromPodByCNISetting (v1.12.0); seen with v1.7.2.
func (v *Verdict) refuseLeaving(before SettingFacts) {
	network, err := multus.ParseNetwork(before.SystemValues[catalog.StorageNetwork])
	if err != nil || network.IsZero() {
		return
	}
	left := multus.Attachment{Network: network, Interface: before.Names.StorageInterface}.String()
	var managers []catalog.Component
	for _, c := range before.Components {
		if c.Kind == catalog.InstanceManager {
			managers = append(managers, c)
		}
	}
	starting := false
	attached := planner.AttachedVolumes(before.Rollout.Volumes)
	for _, b := range attached {
		starting = starting || !slices.ContainsFunc(managers, func(c catalog.Component) bool { return runs(c, b.Name) })
	}
	var leftOn []string
	for _, c := range managers {
		if c.Built[catalog.StorageAttachment] == left && (len(c.Uses) > 0 || starting) {
			leftOn = append(leftOn, c.Name)
		}
	}
	if len(leftOn) == 0 || len(attached) == 0 {
		return
	}
	v.refuse(ReasonReplicasOnNetwork, field.Forbidden(field.NewPath("value"), fmt.Sprintf(
		"%s can't leave %s while volumes are attached: %s would lose their replicas in %s at once, before the value is applied. Attached: %s; stop the workloads that use the volumes, then try again",
		catalog.StorageNetwork, network, longhorn.Name, catalog.FirstOf(leftOn), catalog.Detail(attached))))
}

// runs reports whether an instance manager runs an engine or replica of the volume.
func runs(c catalog.Component, volume string) bool {
	return slices.ContainsFunc(c.Uses, func(instance string) bool { return longhorn.VolumeOfInstance(instance) == volume })
}

// warnUnrestarted says that an RWX network setting restarts no instance manager. Longhorn's sync of the setting deletes the
// instance managers that storage-network waits for; ValidateInstanceManagerDeletion keeps those in use.
func (v *Verdict) warnUnrestarted(d catalog.Definition, plan planner.Plan, system string) {
	if d.Gate != catalog.SharedVolumesDetached {
		return
	}
	_, later := plan.WorkFor(catalog.StorageNetwork)
	inUse := 0
	for _, work := range later {
		if work.Component.Kind == catalog.InstanceManager && len(work.Component.Uses) > 0 {
			inUse++
		}
	}
	if inUse > 0 {
		v.warn("%s still waits for %s in use: the change restarts none of them, since Fairlead's webhook stops %s from deleting their pods",
			catalog.StorageNetwork, catalog.Count(inUse, "instance manager"), system)
	}
}

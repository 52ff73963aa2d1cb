package validators

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/plan"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// refuseLeaving: Longhorn finds the addresses of running replicas by the value of
// its storage-network, before the value is applied. If the value leaves the network
// that instance managers in use are on, Longhorn no longer knows their replicas, and
// attached volumes fault within seconds.
//
// Objects: settings.longhorn.io storage-network.
// Condition: a volume is attached, and an instance manager on the network that the value
// leaves runs something, or may be about to: a volume on its way has no instance yet. So a
// waiting change can be taken back until an instance manager that was idle has joined the
// new network and is in use there.
// Source: longhorn-manager datastore/kubernetes.go, GetStorageIPFromPod (v1.7.2, v1.8.1,
// v1.10.0) and GetIPFromPodByCNISetting (v1.12.0); seen beside v1.7.2.
func (v *Verdict) refuseLeaving(before SettingFacts) {
	network, err := storage.ParseNetwork(before.SystemValues[catalog.StorageNetwork])
	if err != nil || network.IsZero() {
		return
	}
	left := storage.Attachment{Network: network, Interface: before.Profile.StorageInterface}.String()
	var managers []catalog.Component
	for _, c := range before.Components {
		if c.Kind == catalog.InstanceManager {
			managers = append(managers, c)
		}
	}
	onItsWay := false
	attached := plan.AttachedVolumes(before.Volumes)
	for _, b := range attached {
		onItsWay = onItsWay || !slices.ContainsFunc(managers, func(c catalog.Component) bool { return runs(c, b.Name) })
	}
	var leftOn []string
	for _, c := range managers {
		if c.Built[catalog.StorageAttachment] == left && (len(c.Uses) > 0 || onItsWay) {
			leftOn = append(leftOn, c.Name)
		}
	}
	if len(leftOn) == 0 || len(attached) == 0 {
		return
	}
	v.refuse(ReasonReplicasOnNetwork, field.Forbidden(field.NewPath("value"), fmt.Sprintf(
		"%s can't leave %s while volumes are attached: %s would lose their replicas there (in %s) at once, before the value is applied. Attached: %s; stop the workloads that use them, then try again",
		catalog.StorageNetwork, network, before.Profile.Name, catalog.FirstOf(leftOn), catalog.Detail(attached))))
}

// runs tells whether an instance manager runs an engine or replica of the volume.
func runs(c catalog.Component, volume string) bool {
	return slices.ContainsFunc(c.Uses, func(instance string) bool { return storage.VolumeOfInstance(instance) == volume })
}

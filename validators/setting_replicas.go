package validators

import (
	"github.com/fairlead-io/fairlead/settings"
	"github.com/fairlead-io/fairlead/storage"
)

// warnOfReplicas: Longhorn finds the addresses of running replicas by the value of
// its storage-network, before that is applied. Replicas on the network before are
// then unknown to it, and their volumes can fault.
//
// Objects: settings.longhorn.io storage-network.
// Condition: the value leaves a network while volumes are attached.
// Source: longhorn-manager v1.7.2, v1.8.1 and v1.10.0 datastore/kubernetes.go,
// GetStorageIPFromPod; seen beside v1.7.2.
func (v *Verdict) warnOfReplicas(d settings.Definition, before, after SettingFacts) {
	if d.Name != settings.StorageNetwork || before.Own {
		return
	}
	was, err := storage.ParseNetwork(before.SystemValues[d.Name])
	is, alsoErr := storage.ParseNetwork(after.SystemValues[d.Name])
	if err != nil || alsoErr != nil || was.IsZero() || was == is {
		return
	}
	var attached []settings.Blocker
	for _, b := range settings.AttachedVolumes(before.Volumes) {
		attached = append(attached, b.Blocker)
	}
	if len(attached) == 0 {
		return
	}
	v.warn("%s finds running replicas by this value before it is applied, and attached volumes can fault: %s. Set %s back to %s now, detach all volumes, then change it",
		before.Profile.Name, settings.Detail(attached), d.Name, was)
}

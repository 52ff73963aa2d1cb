package validators

import (
	"iter"
	"maps"

	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// VolumeAsking is the view of an object that may ask for a network for its
// volume: a PersistentVolumeClaim, a PersistentVolume or a StorageClass.
type VolumeAsking struct {
	Metadata struct {
		Name        string            `json:"name"`
		Namespace   string            `json:"namespace"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	// Provisioner of a class.
	Provisioner string `json:"provisioner"`
	Spec        struct {
		AccessModes      []string `json:"accessModes"`
		VolumeName       string   `json:"volumeName"`
		StorageClassName string   `json:"storageClassName"`
		ClaimRef         *struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
			UID       string `json:"uid"`
		} `json:"claimRef"`
		CSI *struct {
			Driver       string `json:"driver"`
			VolumeHandle string `json:"volumeHandle"`
		} `json:"csi"`
	} `json:"spec"`
}

// AnnotationKeys are those of the object.
func (o VolumeAsking) AnnotationKeys() iter.Seq[string] { return maps.Keys(o.Metadata.Annotations) }

// VolumeNetworkFacts are the facts that such an object is judged by, read live.
type VolumeNetworkFacts struct {
	// Claim, Volume and Class ask for the volume, as they will after the change.
	Claim, Volume, Class storage.RequestSource
	// Driver of the volume, "" where that is open yet, and those that Fairlead works for.
	Driver  string
	Drivers []string
	// Networks in the cluster. NetworksKnown is false where they could not be listed.
	Networks      []storage.Network
	NetworksKnown bool
	MissingPolicy Strictness
	// Rollout has the record, the DaemonSet, the clients and all volumes.
	Rollout rollout.Rollout
	// Concerned are the volumes that the change is about, and Services theirs.
	Concerned []storage.Volume
	Services  []storage.Service
	// Holders are the other volumes that have addresses fixed, or ask for some.
	Holders []IdentityHolder
}

// IdentityHolder is a volume with what is fixed for its server on a network.
type IdentityHolder struct {
	// Who names it: volume pvc-b (PersistentVolumeClaim default/data).
	Who      string
	Network  storage.Network
	Identity storage.Identity
}

package validators

import (
	"iter"
	"maps"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// VolumeObject is the view of an object that may request a network for its volume: a PersistentVolumeClaim, a
// PersistentVolume or a StorageClass.
type VolumeObject struct {
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

// AnnotationKeys of the object.
func (o VolumeObject) AnnotationKeys() iter.Seq[string] { return maps.Keys(o.Metadata.Annotations) }

// VolumeNetworkFacts are the live facts about an object that requests a network.
type VolumeNetworkFacts struct {
	// Claim, Volume and Class request the network, as they are after the change.
	Claim, Volume, Class rwx.RequestSource
	Names                longhorn.Names
	// Driver of the volume, "" if it is not known yet.
	Driver string
	// MissingPolicy for a network that does not exist.
	MissingPolicy settings.Strictness
	// Permitted is what volumes may request, by the configuration.
	Permitted rwx.Permitted
	// Rollout of the network for RWX volumes.
	Rollout rollout.Rollout
	// Concerned are the volumes that the change concerns.
	Concerned []rwx.Volume
	// OmitEffect: verdicts do not say which clients restart and when.
	OmitEffect bool
	// Created: the object is new.
	Created bool
	// Holders are the other volumes with fixed addresses, or with a request for some.
	Holders []rwx.Claimant
}

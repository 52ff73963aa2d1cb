package volume

import (
	"maps"
	"slices"
)

// View is what admission reads of a PersistentVolume of an NFS CSI driver.
type View struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		AccessModes  []string `json:"accessModes"`
		MountOptions []string `json:"mountOptions"`
		VolumeMode   string   `json:"volumeMode"`
		CSI          CSI      `json:"csi"`
		// Reclaim is what happens to the volume once its claim is gone.
		Reclaim string `json:"persistentVolumeReclaimPolicy"`
	} `json:"spec"`
}

// CSI is the source of a CSI volume; empty for other volumes.
type CSI struct {
	Driver           string            `json:"driver"`
	ReadOnly         bool              `json:"readOnly"`
	VolumeAttributes map[string]string `json:"volumeAttributes"`
}

// Driver of the volume; empty if it is no CSI volume.
func (v View) Driver() string { return v.Spec.CSI.Driver }

// Attributes of the volume.
func (v View) Attributes() map[string]string { return v.Spec.CSI.VolumeAttributes }

// IsSame reports whether two views agree in what the rules read. Binding a volume and
// removing its finalizers change other fields and must always work.
func (v View) IsSame(old View) bool {
	return slices.Equal(v.Spec.MountOptions, old.Spec.MountOptions) && v.Driver() == old.Driver() && maps.Equal(v.Attributes(), old.Attributes())
}

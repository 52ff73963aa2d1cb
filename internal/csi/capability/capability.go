// Package capability decides which volume capabilities an NFS share has.
package capability

import (
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// Check returns what is wrong with a capability; nil: the share has it. A
// MissingError is about the request, any other error about the share. The type of
// the file system is ignored, as the GKE driver and csi-driver-nfs do.
func Check(c *csi.VolumeCapability) error {
	switch {
	case c == nil:
		return errMissing("volume_capability")
	case c.GetAccessType() == nil:
		return errMissing("volume_capability.access_type")
	case c.GetAccessMode().GetMode() == csi.VolumeCapability_AccessMode_UNKNOWN:
		return errMissing("volume_capability.access_mode")
	case c.GetBlock() != nil:
		return fmt.Errorf("an NFS share is no block device: set volumeMode: Filesystem")
	}
	if _, known := csi.VolumeCapability_AccessMode_Mode_name[int32(c.GetAccessMode().GetMode())]; !known {
		return fmt.Errorf("access mode %d is not known: use one of the CSI spec v1.12.0", c.GetAccessMode().GetMode())
	}
	return nil
}

// MissingError names a field that the request must have.
type MissingError struct{ Field string }

// Error names the field.
func (e MissingError) Error() string { return "the request has no " + e.Field }

func errMissing(field string) error { return MissingError{Field: field} }

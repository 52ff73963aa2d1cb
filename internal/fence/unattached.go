package fence

// Why a driver without attachments cannot be protected, since the gate is the creation of VolumeAttachments; and what to do.
const (
	Unattached   = "its CSIDriver has attachRequired: false, so Kubernetes creates no VolumeAttachment for its volumes, and nothing can hold a pod of another node back"
	UnattachedDo = "set attachRequired: true, as Rook does by default; or fencing.profiles[].mode: off, for all drivers of the profile"
)

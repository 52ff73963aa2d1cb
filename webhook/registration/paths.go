package registration

// Entries of a profile: the last names of their paths.
const (
	EntryClientPods               = "client-pods"
	EntryServerPods               = "server-pods"
	EntryClientTemplate           = "client-template"
	EntryServices                 = "services"
	EntryShareManagers            = "sharemanagers"
	EntrySettingStatus            = "setting-status"
	EntrySettings                 = "settings"
	EntryInstanceManagerDeletions = "instance-manager-deletions"
)

// MutatePath is the path of a mutating entry of a profile.
func MutatePath(profile, entry string) string { return "/mutate/" + profile + "/" + entry }

// ValidatePath is the path of a validating entry of a profile.
func ValidatePath(profile, entry string) string { return "/validate/" + profile + "/" + entry }

// Paths of entries without a profile: several profiles may use a network, and a claim does not name its profile.
const (
	NetworksPath       = "/validate/networks"
	VolumeNetworksPath = "/validate/volume-networks"
	StraySettingsPath  = "/validate/stray-settings"

	// One entry is for all fenced storage systems: the driver tells them apart.
	AttachmentMarksPath    = "/mutate/attachment-marks"
	AttachmentsPath        = "/validate/attachments"
	NodesPath              = "/validate/nodes"
	NodeFenceOverridesPath = "/mutate/nodefence-overrides"
	NodeFencesPath         = "/validate/nodefences"
	WorkloadPodsPath       = "/mutate/workload-pods"

	NFSServicesPath      = "/validate/nfs-services"
	NFSVolumesPath       = "/validate/nfs-volumes"
	NFSVolumeOptionsPath = "/mutate/nfs-volume-options"
)

package registration

// Entries of the webhook configurations: the names of rules in paths, metrics and logs.
const (
	EntryClientPods     = "client-pods"
	EntryServerPods     = "server-pods"
	EntryClientTemplate = "client-template"
	EntryServices       = "services"
	EntryShareManagers  = "sharemanagers"
	EntrySettingStatus  = "setting-status"
	EntrySettings       = "settings"
	entryNetworks       = "networks"
	entryVolumeNetworks = "volume-networks"
	entryStraySettings  = "stray-settings"

	EntryInstanceManagerDeletions = "instance-manager-deletions"

	// Fencing.
	entryAttachmentMarks    = "attachment-marks"
	entryAttachments        = "attachments"
	entryNodes              = "nodes"
	entryNodeFenceOverrides = "nodefence-overrides"
	entryNodeFences         = "nodefences"
	entryWorkloadPods       = "workload-pods"

	// NFS services.
	entryNFSServices      = "nfs-services"
	entryNFSVolumes       = "nfs-volumes"
	entryNFSVolumeOptions = "nfs-volume-options"
)

// MutatePath is the path of a mutating entry of a profile.
func MutatePath(profile, entry string) string { return "/mutate/" + profile + "/" + entry }

// ValidatePath is the path of a validating entry of a profile.
func ValidatePath(profile, entry string) string { return "/validate/" + profile + "/" + entry }

// Paths of entries without a profile: several profiles may use a network, and a claim does not name its profile.
const (
	NetworksPath       = "/validate/" + entryNetworks
	VolumeNetworksPath = "/validate/" + entryVolumeNetworks
	StraySettingsPath  = "/validate/" + entryStraySettings

	// One entry is for all fenced storage systems: the driver tells them apart.
	AttachmentMarksPath    = "/mutate/" + entryAttachmentMarks
	AttachmentsPath        = "/validate/" + entryAttachments
	NodesPath              = "/validate/" + entryNodes
	NodeFenceOverridesPath = "/mutate/" + entryNodeFenceOverrides
	NodeFencesPath         = "/validate/" + entryNodeFences
	WorkloadPodsPath       = "/mutate/" + entryWorkloadPods

	NFSServicesPath      = "/validate/" + entryNFSServices
	NFSVolumesPath       = "/validate/" + entryNFSVolumes
	NFSVolumeOptionsPath = "/mutate/" + entryNFSVolumeOptions
)

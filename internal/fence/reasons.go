package fence

// Reasons of a NodeFence, in one word each: metric labels and events have them too.
const (
	ReasonReady            = "Ready"
	ReasonNotFenceable     = "NotFenceable"     // healthy, and could not be fenced if it were lost
	ReasonStillMounted     = "StillMounted"     // healthy, and has a volume that was detached by force
	ReasonNotReady         = "NotReady"         // lost, neither tainted nor deleted
	ReasonNodeDeleted      = "NodeDeleted"      // its object is gone
	ReasonUnseen           = "Unseen"           // its Node was deleted while Fairlead did not look, so its last boot is unknown
	ReasonReplaced         = "Replaced"         // another machine has its name
	ReasonTaintedButReady  = "TaintedButReady"  // a healthy node is not fenced
	ReasonOldMounts        = "OldMounts"        // Ready again in the boot whose volumes an operator released
	ReasonNothingHeld      = "NothingHeld"      // lost, and no protected volume was on it
	ReasonSwitchedOff      = "SwitchedOff"      // by the configuration
	ReasonGuardOnly        = "GuardOnly"        // held; an operator fences
	ReasonFencing          = "Fencing"          // requested, not confirmed
	ReasonDriverFences     = "DriverFences"     // refused: the CSI driver fences and unfences by itself
	ReasonFenced           = "Fenced"           // confirmed
	ReasonDrained          = "Drained"          // nothing is left on the node
	ReasonNotRebooted      = "NotRebooted"      // returned, with its old mounts
	ReasonTainted          = "Tainted"          // returned, and waits for its taint to be removed
	ReasonSettling         = "Settling"         // returned, and watched for a while
	ReasonOldAttachments   = "OldAttachments"   // returned, with old attachments
	ReasonSharedAddress    = "SharedAddress"    // another fenced node has the same address
	ReasonUnfencing        = "Unfencing"        // requested, not confirmed
	ReasonOverridden       = "Overridden"       // an operator releases its volumes
	ReasonReleased         = "Released"         // an operator releases its volumes, and has not tainted it yet
	ReasonNoIdentity       = "NoIdentity"       // refused: no address is on record
	ReasonStaleLedger      = "StaleLedger"      // refused: what was recorded is too old
	ReasonBadAddress       = "BadAddress"       // refused: not the address of one host
	ReasonAddressInUse     = "AddressInUse"     // refused: a live node or a server has it; or this node's address is blocked by another node's fence
	ReasonOutsideRange     = "OutsideRange"     // refused: it belongs to another cluster
	ReasonContradicted     = "Contradicted"     // refused: the storage system sees the node elsewhere
	ReasonNoCredentials    = "NoCredentials"    // refused: neither class nor secret
	ReasonLeftoverUnfenced = "LeftoverUnfenced" // refused: another object would unblock the address
	ReasonUnanswered       = "Unanswered"       // csi-addons does not act on requests
	ReasonDriverFailed     = "DriverFailed"     // the CSI driver refused
	ReasonNoCSIAddons      = "NoCSIAddons"      // csi-addons is not installed
	ReasonWriteFailed      = "WriteFailed"      // the API server refused a write of Fairlead
)

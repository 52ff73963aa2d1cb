package fence

// Reasons of a NodeFence, in one word each: metric labels and events have them too.
const (
	ReasonReady            = "Ready"
	ReasonNotFenceable     = "NotFenceable"     // healthy, and could not be fenced if it were lost
	ReasonStillMounted     = "StillMounted"     // healthy, and has a volume that was detached by force
	ReasonNotReady         = "NotReady"         // lost, and nobody has said more
	ReasonNodeDeleted      = "NodeDeleted"      // its object is gone
	ReasonReplaced         = "Replaced"         // another machine has its name
	ReasonRenamed          = "Renamed"          // the machine has rebooted and is another node now
	ReasonTaintedButReady  = "TaintedButReady"  // a healthy node is not fenced
	ReasonNothingHeld      = "NothingHeld"      // lost, and no protected volume was on it
	ReasonSwitchedOff      = "SwitchedOff"      // by the configuration
	ReasonGuardOnly        = "GuardOnly"        // held, but somebody else is to fence
	ReasonFencing          = "Fencing"          // asked for, not confirmed
	ReasonDriverFences     = "DriverFences"     // refused: the CSI driver fences and unfences by itself
	ReasonFenced           = "Fenced"           // confirmed
	ReasonDrained          = "Drained"          // nothing is left on the node
	ReasonNotRebooted      = "NotRebooted"      // back, but with the mounts of before
	ReasonTainted          = "Tainted"          // back, and waits for its taint to go
	ReasonSettling         = "Settling"         // back, and watched for a while
	ReasonOldAttachments   = "OldAttachments"   // back, with attachments of before
	ReasonSharedAddress    = "SharedAddress"    // another fenced node has the same address
	ReasonUnfencing        = "Unfencing"        // asked for, not confirmed
	ReasonOverridden       = "Overridden"       // an operator lets its volumes go
	ReasonNoIdentity       = "NoIdentity"       // refused: the storage system knows the node by nothing that was recorded
	ReasonStaleLedger      = "StaleLedger"      // refused: what was recorded is too old
	ReasonBadAddress       = "BadAddress"       // refused: no address of one host
	ReasonAddressInUse     = "AddressInUse"     // refused: a live node or a server has it; or the one has it that another is fenced by
	ReasonOutsideRange     = "OutsideRange"     // refused: it belongs to another cluster
	ReasonContradicted     = "Contradicted"     // refused: the storage system sees the node elsewhere
	ReasonNoCredentials    = "NoCredentials"    // refused: neither class nor secret
	ReasonLeftoverUnfenced = "LeftoverUnfenced" // refused: another object would let the address in again
	ReasonUnanswered       = "Unanswered"       // csi-addons does nothing of what it is asked for
	ReasonDriverFailed     = "DriverFailed"     // the CSI driver said no
	ReasonNoCSIAddons      = "NoCSIAddons"      // there is nobody to fence: csi-addons is not installed
	ReasonWriteFailed      = "WriteFailed"      // the API server did not take what Fairlead wrote
)

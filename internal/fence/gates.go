package fence

// Scheduling gates hold pods whose volumes need no attachment: without a VolumeAttachment to refuse, the pod waits
// unscheduled.
const (
	// SchedulingGate of a pod that waits for a fence.
	SchedulingGate = "fairlead.io/fence"
	// GatedLabel selects the pods with the gate, so that no reader lists all pods.
	GatedLabel = "fairlead.io/gated"
	// UnattachedLabel with the value "true" is on pods that may use volumes without attachment:
	// no VolumeAttachment shows the node of such a volume.
	UnattachedLabel = "fairlead.io/unattached-volumes"
	// OptInLabel with the value OptedIn on a namespace allows gating its pods.
	OptInLabel = "fairlead.io/fencing"
	OptedIn    = "enabled"
)

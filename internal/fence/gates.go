package fence

// Scheduling gates hold pods whose volumes need no attachment: there is no
// VolumeAttachment to refuse, so the pod itself waits, unscheduled.
const (
	// SchedulingGate of a pod that waits for a fence.
	SchedulingGate = "fairlead.io/fence"
	// GatedLabel is on the pods that have the gate, so that nobody has to look at all pods.
	GatedLabel = "fairlead.io/gated"
	// UnattachedLabel is on the pods that use volumes which Kubernetes does not attach, or
	// may, with the value "true": no attachment tells which node they are on.
	UnattachedLabel = "fairlead.io/unattached-volumes"
	// OptInLabel on a namespace lets its pods be gated: with the value OptedIn.
	OptInLabel = "fairlead.io/fencing"
	OptedIn    = "enabled"
)

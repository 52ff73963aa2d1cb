package fence

// What the gates put on objects and look for on them.
const (
	// PhaseLabel on a NodeFence repeats its phase, so that those that are not
	// Healthy can be selected: there are few of them.
	PhaseLabel = "fairlead.io/phase"
	// JudgedAnnotation on a new VolumeAttachment says that Fairlead is there and
	// judges it. Where it is missing, the API server itself judges, by less.
	JudgedAnnotation = "fairlead.io/judged"
	// OptInLabel on a namespace, with the value OptInEnabled: its pods wait for the
	// fence of volumes that Kubernetes does not attach.
	OptInLabel   = "fairlead.io/fencing"
	OptInEnabled = "enabled"
	// SchedulingGate of such a pod; the controller lifts it.
	SchedulingGate = "fairlead.io/fence"
	// GatedLabel, with the value "true", is on every pod that was given the gate.
	GatedLabel = "fairlead.io/gated"
)

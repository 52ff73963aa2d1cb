package rwx

// Annotations and labels of Fairlead on objects of others.
const (
	// OptOutAnnotation set to "true" on a pod, pod template or Service keeps Fairlead's mutators off it.
	OptOutAnnotation = "fairlead.io/opt-out"
	// StrategyAnnotation on the client DaemonSet keeps its update strategy, as
	// JSON, while Fairlead restarts the pods itself, node by node.
	StrategyAnnotation = "fairlead.io/update-strategy"
	// NetworkAnnotation on a Service records the network of its volume, as
	// Attachment.String writes it. It is set once, when the Service is created.
	NetworkAnnotation = "fairlead.io/network"
	// AddressesAnnotation and MACAnnotation on a Service record, with the network,
	// what is fixed for the volume's server there.
	AddressesAnnotation = "fairlead.io/addresses"
	MACAnnotation       = "fairlead.io/mac"
	// SelectorAnnotation on a headless Service keeps the selector that it was
	// created with, as JSON, for the day that it becomes a ClusterIP Service again.
	SelectorAnnotation = "fairlead.io/selector"
	// RestartsAnnotation set to RestartsPaused on a NetworkRollout: no workload pod
	// is restarted until the annotation is removed.
	RestartsAnnotation = "fairlead.io/workload-restarts"
	RestartsPaused     = "paused"
	// NamespaceAnnotation on a client pod keeps the network namespace that it was
	// last seen with, as NetworkNamespace.String writes it.
	NamespaceAnnotation = "fairlead.io/network-namespace"
)

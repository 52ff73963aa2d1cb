package storage

// Marks on what Fairlead publishes.
const (
	// SliceManager is the value of endpointslice.kubernetes.io/managed-by on
	// Fairlead's slices: Kubernetes' own controllers leave them alone.
	SliceManager = "fairlead.io"
	// EndpointsManagedBy is the label that says the same of a classic Endpoints
	// object (k8s.io/kubernetes pkg/controller/endpoint has a value of its own for it).
	EndpointsManagedBy = "endpoints.kubernetes.io/managed-by"
)

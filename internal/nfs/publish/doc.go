// Package publish decides what the Services of an NFS service and their
// EndpointSlices should be, by exposure:
//
//	Stable         one Service, which points to one backend at a time
//	PerNode        none: nodes mount the addresses of the backends
//	PerNodeStable  one Service for each slot, which points to one backend at a time
//
// The Services have no selector, so that Kubernetes publishes nothing for them.
// Each names one ready address: kube-proxy balances every connection alone, and
// another server knows neither the handles (NFSv3) nor the session (NFSv4) of a client.
//
// It is pure: objects of k8s.io/api in and out, no client.
package publish

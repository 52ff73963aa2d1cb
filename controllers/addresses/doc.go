// Package addresses writes the addresses of Services without selector: EndpointSlices of
// Fairlead's own, which kube-proxy and DNS read.
// The publishers of shared volumes (controllers/endpoints) and of NFS services
// (controllers/nfs/frontend) decide what to write.
package addresses

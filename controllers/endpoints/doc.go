// Package endpoints publishes the addresses of headless Services: only of the pods that serve a
// volume on its storage network.
//
// storage.Publish decides what to publish. This package writes EndpointSlices, one per IP family,
// which kube-proxy and DNS read, and a classic Endpoints object for readers of the old API, with a
// label that keeps Kubernetes from mirroring it into slices.
//
// The Service owns both. Kubernetes publishes Services with a selector or a cluster IP: earlier
// objects of Fairlead are deleted. If the duty is off, Releaser returns the volumes to Longhorn.
package endpoints

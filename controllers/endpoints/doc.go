// Package endpoints publishes the addresses of headless Services: who serves a
// volume on its storage network, and nobody else.
//
// What to publish is decided by storage.Publish; this package writes it down in
// two forms: EndpointSlices of its own, one per IP family, which kube-proxy and
// DNS read, and a classic Endpoints object for readers of the old API, labelled
// so that Kubernetes does not mirror it into slices once more.
//
// Both are owned by the Service, so that they go with it. A Service with a
// selector or a cluster IP is Kubernetes' to publish: what was published before
// is deleted. Where the duty is off, Releaser returns the volumes to Longhorn.
package endpoints

// Package frontend writes the addresses under which clients reach NFS servers: a
// Service without selector that keeps its ClusterIP, and Fairlead's own
// EndpointSlices, which kube-proxy and DNS read. It is the only writer of these; the
// controllers of NFS services and of Ondat's volumes decide.
package frontend

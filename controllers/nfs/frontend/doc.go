// Package frontend writes the addresses under which clients reach NFS servers: a
// Service without selector that keeps its ClusterIP, Fairlead's own EndpointSlices,
// and a classic Endpoints object for readers of the old API. It is the only writer
// of these; the controllers of NFS services and of Ondat's volumes decide.
package frontend

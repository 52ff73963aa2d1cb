// Package sandbox is a real control plane with Fairlead installed in it, for
// tests, the demo and development: etcd, API server, controllers, simulated
// nodes, what an installation of Longhorn leaves in the API, and Fairlead's own
// processes under their own service accounts. Nothing leaves this machine, and
// what it starts it stops.
package sandbox

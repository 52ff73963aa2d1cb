// Package nfs runs NFS services in a machine of its own: the real control plane, go-nfs as server, and Fairlead's
// controller. Package nodes mounts them.
package nfs

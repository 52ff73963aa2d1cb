// Package nfs runs NFS services end to end in a machine of its own: the real
// control plane, the real kube-proxy, go-nfs as server, an NFSv3 client over FUSE, and Fairlead's own
// controller and node plugin. See the package machine for what it needs.
package nfs

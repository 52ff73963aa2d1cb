// Package nfs runs NFS services end to end in a machine of its own: the real
// control plane, the real kube-proxy, real NFS servers, and Fairlead's own
// controller and node plugin. See the package machine for what it needs.
package nfs

// Package fence decides what happens to a node that is lost while it holds volumes: whether it may be fenced and by
// which addresses, when a volume may be attached elsewhere, and when the node may be readmitted. Source: the proposal
// "Recover RBD/CephFS RWO PVC in case of Node Loss".
//
// The package is pure: facts in, a verdict out. Admission, the controller and its messages use the same functions.
//
// The phases of one node (v1alpha1.NodeFencePhase):
//
//	Healthy → Lost → Fencing → Fenced → Drained → Returned → Unfencing → Healthy
//
// Attach never releases a volume while its last holder is lost and not fenced. Next never unfences a node before it
// has rebooted. An operator can override both.
package fence

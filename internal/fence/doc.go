// Package fence decides what becomes of a node that is lost while it holds
// volumes: whether it may be fenced and by which addresses, when a volume may be
// attached elsewhere, and when the node may be let in again. Its source is the
// proposal "Recover RBD/CephFS RWO PVC in case of Node Loss".
//
// It is pure: facts in, a verdict out. It imports no client, no clock and no
// logger. The same functions feed admission, the controller and its messages.
//
// The order, for one node (v1alpha1.NodeFencePhase):
//
//	Healthy → Lost → Fencing → Fenced → Drained → Returned → Unfencing → Healthy
//
// Two things are never done: a volume is not let go while who held it last is
// lost and not fenced (Attach), and a node is not let in again before it has
// booted anew (Next). Both can be overridden by an operator, who then answers for it.
package fence

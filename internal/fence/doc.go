// Package fence decides what happens to a node that is lost while it has volumes: whether it may be fenced and by which
// addresses, when a volume may be attached elsewhere, and when the node may be readmitted. Source: the proposal "Recover
// RBD/CephFS RWO PVC in case of Node Loss".
//
// The package is pure: facts in, a verdict out. Admission, the controller and its messages use the same functions.
//
// Each boot of a machine has a record of its own, whose memory (v1alpha1.NodeFenceSpec) only grows: a volume leaves it when it
// was given back in the right order, when a later boot of the machine was seen, or when a person says so. MayWrite is the one
// predicate on it. Next takes a record one step further; phases and messages follow from the memory, and nothing is decided by
// them.
package fence

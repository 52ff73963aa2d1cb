// Package assign decides which backend of an NFS service a node uses.
//
// A Pool holds the nodes of one service and is derived from VolumeAttachments
// alone: Record of each, in any order, gives the state that led to them, so that a
// restart moves nothing and no count can drift. A node that has several volumes
// of the service counts once and keeps its backend until the last is detached.
//
// A node gets the backend with the fewest nodes for its weight, in its own zone
// while the backend there has at most the slack above the average. Plan returns what
// a rebalance would move; Repoint does the same for slots, the ClusterIPs of
// exposure PerNodeStable. Nothing moves otherwise.
//
// Sources: "GKE NFS LoadBalancer CSI driver for Kubernetes" (fewest nodes first;
// lbcontroller.go counts in memory); topology.kubernetes.io/zone.
package assign

// Package workloads restarts the workload pods whose NFS mount has died.
//
// A mount that was made in the network namespace of a CSI plugin pod dies with
// that namespace, and only a new workload pod mounts the volume again. Which mounts
// are dead is decided by storage.Judge; this package looks at a node each time its
// plugin pod is Ready with another network namespace than before, and evicts.
//
// The pods of a node are listed live, once for each namespace of its client and
// while something is left to do there; they are not cached. Pods that are not on
// that first list were mounted by the client that is there now. Pods that only wait
// for their turn are evicted as they were listed, or listed again if they have changed.
package workloads

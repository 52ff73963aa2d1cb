// Package ondat publishes the shared volumes of an Ondat (StorageOS) control plane:
// for each one a Service whose ClusterIP lives as long as the PVC, which leads to the
// volume's NFS server of the moment, and the mount endpoint <ClusterIP>:2049, which
// the control plane mounts.
//
// A round lists the volumes, judges them (internal/nfs/ondat), and brings the objects
// of each in line. controllers/nfs/frontend writes, as for any NFS service with one
// backend and exposure Stable. There is a round each poll interval, and after a change
// of a Service or a slice.
//
// Source: the proposal of the StorageOS shared volume controller. What differs:
//
//   - During failover, and while a volume is detached or its server's address is
//     doubtful, the slice names nothing: the old address may be another volume's by
//     then. The Service, its ClusterIP and the label stay for the life of the PVC.
//   - Once the PVC of a detached volume is gone, its label is cleared: the ClusterIP
//     is free again and may be given to another Service.
//   - The ClusterIP of a deleted Service is asked for again. If the address is taken,
//     an event reports it. Another is published only if the PVC's annotation allows it.
//   - Each round compares all volumes with the cache of Kubernetes, so none is skipped
//     until a time has passed (-cache-expiry-interval).
package ondat

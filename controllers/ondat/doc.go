// Package ondat publishes the shared volumes of an Ondat (StorageOS) control plane:
// for each one a Service whose ClusterIP lives as long as the PVC, which leads to the
// volume's NFS server of the moment, and the mount endpoint <ClusterIP>:2049, which
// the control plane mounts.
//
// A poll lists the volumes; internal/nfs/ondat judges them; volumes with news are
// reconciled side by side. Changes of Services, slices and PVCs are reconciled on
// their event. controllers/nfs/frontend writes, as for any NFS service with one
// backend and exposure Stable.
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
package ondat

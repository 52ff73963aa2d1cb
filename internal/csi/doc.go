// Package csi holds the names that the parts of the CSI driver for NFS services share.
//
//   - node and identity answer the RPCs of the CSI spec (v1.12.0: the last
//     with VolumeCondition, which kubelets up to 1.36 read);
//   - server serves them on a Unix socket;
//   - mounts runs mount(8), and reads what is mounted, with deadlines;
//   - registration registers the driver with the kubelet;
//   - conntrack forgets connections to servers that an address has left.
package csi

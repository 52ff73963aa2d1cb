// Package options reads what a PersistentVolume says about an NFS mount: mount
// options, the share and the sub-directory, and builds the source to mount.
//
// read_ahead_kb is not an option of mount(8): Parse takes it out. The node plugin
// writes it to the device's BDI (/sys/class/bdi/MAJOR:MINOR/read_ahead_kb).
//
// Sources: nfs(5) of nfs-utils 2.6.2, mount(8) of util-linux 2.38; "GKE NFS
// LoadBalancer CSI driver for Kubernetes" for read_ahead_kb.
package options

// Package volume reads what a volume of the NFS CSI driver asks for: its
// attributes (PersistentVolume.spec.csi.volumeAttributes, which CSI calls
// volume_context) and its mount options. Admission, the attacher and the node
// plugin use the same functions.
//
// Source: "GKE NFS LoadBalancer CSI driver for Kubernetes", whose volumes are
// served as they are (nodeserver.go: NodePublishVolume), and csi-driver-nfs.
package volume

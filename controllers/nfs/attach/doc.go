// Package attach is the attacher of the NFS CSI driver: it gives each node a server
// of the NFSService that a volume names, and writes the address where Kubernetes
// hands it to the node: VolumeAttachment.status.attachmentMetadata. It takes the place
// of the sidecar external-attacher and of the CSI Controller RPCs.
//
// A VolumeAttachment that has an address keeps it. Each write has the version that
// was read as precondition, so that a stale cache or a second leader changes nothing.
//
// Sources: "GKE NFS LoadBalancer CSI driver for Kubernetes" (ControllerPublishVolume,
// ControllerUnpublishVolume); external-attacher, pkg/controller/csi_handler.go.
package attach

package csi

// DefaultDriver is the name of the CSI driver where the configuration names none.
const DefaultDriver = "nfs.fairlead.io"

// AddressKey is the key of PublishContext, and of the attachment's metadata, whose
// value is the address that the node mounts: nfs.ParseEndpoint(value, nfs.DefaultPort)
// reads it. The GKE driver writes the same key (lbcontroller.go: "…/assigned-ip").
func AddressKey(driver string) string { return driver + "/assigned-ip" }

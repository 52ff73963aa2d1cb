package ondat

import (
	"cmp"
	"net/netip"

	"github.com/fairlead-io/fairlead/internal/nfs"
)

// Labels of Ondat's volumes. The first three are set by the external provisioner
// (--extra-create-metadata) and cannot be changed.
const (
	LabelPV        = "csi.storage.k8s.io/pv/name"
	LabelPVC       = "csi.storage.k8s.io/pvc/name"
	LabelNamespace = "csi.storage.k8s.io/pvc/namespace"
	// LabelMountEndpoint is what the control plane mounts: <ClusterIP>:2049.
	LabelMountEndpoint = "storageos.com/nfs/mount-endpoint"
)

// VolumeIDLabel is the label of Services that the released manager sets as well.
const VolumeIDLabel = "storageos.com/volume-id"

// ServiceLabelValue is the value of label fairlead.io/nfs-service on the objects of a
// volume. The underscore keeps it apart from the name of any NFSService.
func ServiceLabelValue(id string) string { return "ondat_" + id }

// AttachedNFS is the attachment type of a volume that is attached as shared.
const AttachedNFS = "nfs"

// Detached is the attachment type of a volume that is attached nowhere.
const Detached = "detached"

// Volume is what the control plane reports of one volume (go-api v2.4.0,
// model_volume.go); only what is read here.
type Volume struct {
	ID, Name string
	// NamespaceID is Ondat's namespace, which has nothing to do with the PVC's.
	NamespaceID string
	Labels      map[string]string
	// AttachmentType is unknown, detached, nfs or host.
	AttachmentType string
	// ServiceEndpoint is the address of the NFS server; empty while there is none.
	ServiceEndpoint string
	// Version to send with a change of the volume.
	Version string
}

// Title names the volume in messages.
func (v Volume) Title() string { return "Ondat volume " + short(cmp.Or(v.Name, v.ID)) }

// Published is the mount endpoint that the volume's label has; not valid where
// there is none, or where it is no address with a port. The released manager wrote
// IPv6 addresses without brackets, which no client could mount.
func (v Volume) Published() netip.AddrPort {
	at, err := nfs.ParseEndpoint(v.Labels[LabelMountEndpoint], 0)
	if err != nil {
		return netip.AddrPort{}
	}
	return at
}

// RecordedIP is the ClusterIP that clients may have mounted; not valid: none. A
// Service that was deleted is created again with it.
func (v Volume) RecordedIP() netip.Addr {
	if at := v.Published(); at.Port() == nfs.DefaultPort {
		return at.Addr()
	}
	return netip.Addr{}
}

// MountEndpoint is what to publish for a ClusterIP: with the port, and an IPv6
// address in brackets (the released manager forgot them: controller.go).
func MountEndpoint(clusterIP netip.Addr) string {
	return netip.AddrPortFrom(clusterIP, nfs.DefaultPort).String()
}

package ondat

import (
	"cmp"
	"net/netip"
	"strings"
	"unicode"

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

// Attachment types of a volume that is attached as shared, and of a volume that is attached nowhere.
const (
	AttachedNFS = "nfs"
	Detached    = "detached"
)

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
func (v Volume) Title() string { return "Ondat volume " + Printable(cmp.Or(v.Name, v.ID)) }

// RecordedIP is the ClusterIP that clients may have mounted; not valid: none. A
// Service that was deleted is created again with it. The released manager wrote IPv6
// addresses without brackets, which no client could mount: they do not count.
func (v Volume) RecordedIP() netip.Addr {
	at, err := nfs.ParseEndpoint(v.Labels[LabelMountEndpoint], 0)
	if err != nil || at.Port() != nfs.DefaultPort {
		return netip.Addr{}
	}
	return at.Addr()
}

// MountEndpoint is what to publish for a ClusterIP: with the port, and an IPv6
// address in brackets (the released manager forgot them: controller.go).
func MountEndpoint(clusterIP netip.Addr) string {
	return netip.AddrPortFrom(clusterIP, nfs.DefaultPort).String()
}

// Printable cuts a text of the control plane to one short line.
func Printable(text string) string {
	const most = 200
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

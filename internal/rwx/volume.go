package rwx

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-io/fairlead/internal/multus"
)

// Volume has the facts that gates need of one volume.
type Volume struct {
	Name string
	// Shared: mounted over NFS by its clients. A migratable RWX volume is a
	// block device for live migration and is not shared (longhorn#11158).
	Shared bool
	// Attached: every state but surely detached.
	Attached bool
	// Engine is the data engine of the volume: v1 or v2.
	Engine string
	// Nodes that the volume is attached to.
	Nodes []string
	// Since is when Kubernetes began to attach the volume; zero if Kubernetes has not.
	Since time.Time
	// Workloads that use the volume: namespace/name of pods.
	Workloads []string
	// Owners of the workloads: namespace/kind/name, kind in lower case.
	Owners []string
	// Purposes for which the storage system itself has attached the volume, as for a backup. Empty if workloads use it.
	Purposes []string
	// OtherClaims are those of PersistentVolumes of the volume that the storage system does not name: it names no pods of theirs.
	OtherClaims []string
	// Request of the annotations.
	Request Request
}

// IsShared reports whether a volume of access modes is served over NFS: Longhorn serves all that several nodes may have (v1.12.0,
// csi/util.go, requiresSharedAccess).
func IsShared[M ~string](modes []M) bool {
	return slices.ContainsFunc(modes, func(m M) bool { return m == "ReadWriteMany" || m == "ReadOnlyMany" })
}

// Service has the facts that rules need of a volume's Service.
type Service struct {
	Namespace string
	Name      string
	Volume    string
	// UID and ResourceVersion identify the revision that was read.
	UID, ResourceVersion string
	Created              time.Time
	// ClusterIP as the API has it: an address, "None" or "".
	ClusterIP string
	// Recorded is the network that was recorded when the Service was created.
	Recorded multus.Attachment
	// Identity that was recorded with it.
	Identity multus.Identity
	// OptOut: the Service keeps Fairlead's mutators off it.
	OptOut bool
	// Fixed: the Service is not of type ClusterIP, so it can't be headless and is left alone.
	Fixed bool
	// Selects: the Service has a selector, so that Kubernetes publishes its endpoints.
	Selects bool
}

// ClusterIPNone is the clusterIP of a headless Service.
const ClusterIPNone = "None"

// Headless reports whether the Service has no cluster IP by intent.
func (s Service) Headless() bool { return s.ClusterIP == ClusterIPNone }

// Network decides a volume's server pod, Service and endpoint. The storage system made a headless
// Service without a record: its network is the fallback, the network of the clients.
func (s Service) Network(fallback multus.Attachment) multus.Attachment {
	switch {
	case !s.Headless():
		return multus.Attachment{}
	case !s.Recorded.IsZero():
		return s.Recorded
	default:
		return fallback
	}
}

// Unpublished reports whether the Service is headless, without a selector and without a network:
// the storage system made it by a value that is not applied, while the webhooks were down.
func (s Service) Unpublished(fallback multus.Attachment) bool {
	return s.Headless() && !s.Selects && s.Network(fallback).IsZero()
}

// Placement decides a volume's server pod; see Network.
func (s Service) Placement(fallback multus.Attachment) multus.Placement {
	p := multus.Placement{Network: s.Network(fallback)}
	if !p.Network.IsZero() && !s.Recorded.IsZero() {
		p.Identity = s.Identity
	}
	return p
}

// Server is a pod that serves one shared volume.
type Server struct {
	Pod, UID string
	Volume   string
	Node     string
	// Network that the pod asks for: the first of Networks.
	Network multus.Attachment
	// Networks are all that the pod asks for: its volume's own, then those on the
	// interfaces of Longhorn, of which there may be two.
	Networks []multus.Attachment
	// Reported are the pod's interfaces, as Multus reports them.
	Reported []multus.Reported
	// Fixed are the addresses that the pod asks for.
	Fixed []netip.Addr
	Ready bool
	// ReadySince is when the pod became Ready; zero if it is not, or if that is unknown.
	ReadySince time.Time
	// Terminating pods take no new connections.
	Terminating bool
	Created     time.Time
	// Clash: another pod reports one of its addresses.
	Clash Clash
}

// Client is a pod that mounts shared volumes on its node.
type Client struct {
	Pod, UID string
	Node     string
	// Network that the pod asks for: the first of Networks.
	Network multus.Attachment
	// Networks are all networks that the pod asks for on Longhorn's interfaces.
	// For NetworksReported, Multus reports an address. There are two after an upgrade
	// of the storage system that changes the interface.
	Networks, NetworksReported []multus.Attachment
	// VolumeNetworks are the per-volume networks that the pod asks for, in order. For
	// VolumeNetworksReported, Multus reports an address.
	VolumeNetworks, VolumeNetworksReported []multus.Attachment
	// Revision of the DaemonSet's template that the pod was made from.
	Revision string
	// Reported: Multus reports an address for Network. Interfaces are all that Multus reports.
	Reported   bool
	Interfaces []multus.Reported
	Ready      bool
	// ReadySince is when the pod became Ready; zero if it is not, or if that is unknown.
	ReadySince, Created time.Time
	// Clash: another pod reports one of its addresses.
	Clash Clash
	// Terminating pods mount nothing new, but their mounts may live on.
	Terminating bool
	// Lost: the pod's node is not Ready. The pod can't be replaced before the node returns.
	Lost bool
	// Sandbox and Recorded tell the pod's network namespace; see Sandbox.Namespace.
	Sandbox  Sandbox
	Recorded NetworkNamespace
}

// IsOn reports whether a pod with these networks is on the attachment. Only a pod that requests no
// network is on the zero Attachment, the cluster network.
func IsOn(first multus.Attachment, all []multus.Attachment, a multus.Attachment) bool {
	return first == a || slices.Contains(all, a)
}

// IsOn reports whether the client asks for the attachment.
func (c Client) IsOn(a multus.Attachment) bool { return IsOn(c.Network, c.Networks, a) }

// IsOn reports whether the server asks for the attachment.
func (s Server) IsOn(a multus.Attachment) bool { return IsOn(s.Network, s.Networks, a) }

// Lacks says what the client lacks of a network that it asks for; "" if it lacks nothing.
func (c Client) Lacks(a multus.Attachment) string {
	switch {
	case a.IsZero():
	case !c.Reaches(a):
		return fmt.Sprintf("has no address on %s: Multus reports none", a)
	case c.Clash.Pod != "":
		return fmt.Sprintf("has an address on %s that pod %s has too: the network assigns addresses twice", a, c.Clash.Pod)
	}
	return ""
}

// Reaches reports whether Multus reports an address of the client on the network.
// The interface does not matter: clients reach servers by address.
func (c Client) Reaches(network multus.Attachment) bool {
	same := func(a multus.Attachment) bool { return a.Network == network.Network }
	return same(c.Network) && c.Reported || slices.ContainsFunc(c.NetworksReported, same) || slices.ContainsFunc(c.VolumeNetworksReported, same)
}

// SortVolumes orders volumes by name, so that messages don't flicker.
func SortVolumes(volumes []Volume) {
	slices.SortFunc(volumes, func(a, b Volume) int { return strings.Compare(a.Name, b.Name) })
}

// Reasons why a node has no client that mounts.
const (
	ReasonNoClient       = "no ready client"
	ReasonSeveralClients = "several clients"
)

// MountingClient returns the client that mounts on a node, of all clients there. A second client
// is a reason for none: its mounts may live on though it terminates or is not Ready.
// applied is the network of clients, zero for the cluster network.
func MountingClient(clients []Client, applied multus.Attachment) (client *Client, reason string) {
	if len(clients) > 1 {
		return nil, ReasonSeveralClients
	}
	for i := range clients {
		c := &clients[i]
		if c.Ready && !c.Terminating && (applied.IsZero() || c.Reaches(applied)) {
			return c, ""
		}
	}
	return nil, ReasonNoClient
}

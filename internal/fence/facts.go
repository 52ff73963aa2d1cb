package fence

import (
	"net/netip"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// OutOfServiceTaint is the key of the taint by which Kubernetes releases the pods and volumes of a node that is
// shut down or lost, whatever its value and effect (k8s.io/api/core/v1.TaintNodeOutOfService).
const OutOfServiceTaint = "node.kubernetes.io/out-of-service"

// OwnTaintValue marks an out-of-service taint that Fairlead set.
const OwnTaintValue = "fairlead"

// Node is what is read of a Node object. With only a name, it is a node whose object is gone.
type Node struct {
	Name   string
	Exists bool
	UID    types.UID
	Boot   v1alpha1.Boot
	// Ready is the node's condition, and ReadyChanged when it last changed.
	Ready        bool
	ReadyChanged time.Time
	// Unknown: the node controller has marked the node as silent. A node that is
	// neither Ready nor Unknown reports by itself that it is not Ready.
	Unknown bool
	// OutOfService: the node has the taint; OwnTaint: Fairlead set it; OthersTaint:
	// another party set it, maybe with another effect beside Fairlead's.
	OutOfService, OwnTaint, OthersTaint bool
	// RecordedLoss is what its annotation RecordedLossAnnotation says.
	RecordedLoss string
	// Addresses of the node, internal and external ones.
	Addresses []netip.Addr
	// InUse are the unique names of volumes in its status.volumesInUse, by the kubelet, which also lists volumes that it waits for.
	// Attached are those in its status.volumesAttached, by the attach-detach controller.
	InUse, Attached []string
}

func (n Node) uses(v Volume) bool { return slices.Contains(n.InUse, UniqueName(v.Driver, v.Handle)) }
func (n Node) hasAttached(v Volume) bool {
	return slices.Contains(n.Attached, UniqueName(v.Driver, v.Handle))
}

// Facts are what is known of one boot.
type Facts struct {
	Now time.Time
	// Started is when this controller began to lead, by the clock of Now. Earlier times may be of another clock.
	Started time.Time
	// Record is the name of the boot's NodeFence, and RecordUID its UID.
	Record, RecordUID string
	Spec              v1alpha1.NodeFenceSpec
	// Request of a person that was not carried out yet.
	Request Request
	// Node that has the name now, maybe in another boot or as another machine.
	Node Node
	// Later: a later boot of the machine was seen.
	Later bool
	// Deleted is how this controller saw the Node deleted; zero if it did not, or if there is a Node.
	Deleted Deletion
	// PresentSince is when the Node that has the name now became Ready, by Fairlead's clock.
	PresentSince *metav1.Time
	// HeardSince is from when on this leader saw the kubelet renew its Lease without a gap; zero if it did not, or did not look.
	HeardSince time.Time
	Policy     Policy

	// Holding are the protected volumes that the cluster shows of this boot now (Namesakes).
	Holding []v1alpha1.HeldVolume
	// Torn are those of which the VolumeAttachment was deleted by force, by unique name.
	Torn []string
	// Left are the pods and attachments that remain on the node, for messages.
	Left []string
	// OldAttachments are the attachments of Left that are older than the fences on record.
	OldAttachments []string
	// OldPods are the pods of Left that are older than the fences, as namespace/name.
	OldPods []string
	// Ledger is what the sources report of the node now. It is only read while the node is Ready.
	Ledger []v1alpha1.StorageIdentity
	// Classes are all NetworkFenceClasses of the cluster.
	Classes []Class
	// Fences are all NetworkFences of the cluster, Fairlead's and others'.
	Fences []NetworkFence
	// SelfFencing names, by profile, a pod by which the CSI driver fences and unfences nodes itself.
	SelfFencing map[string]string
	// NoCSIAddons: the cluster has no NetworkFences, so no fence can be requested.
	NoCSIAddons bool
	// SilentManager says that csi-addons' manager, which carries out fences, has been silent; empty if it has not or if
	// that is unknown. Drills and automatic tainting read this.
	SilentManager string
	// Machines are all boots, by their Nodes and NodeFences. The boot itself may be among them: see others.
	Machines []Other
	// Servers of the storage systems.
	Servers []Server
	// Report of the storage itself; empty where the storage is not asked.
	Report Report
	// Asking: the storage has not answered yet, so no fence is requested.
	Asking bool
}

// Server is a pod that serves storage, or a host that the storage system reports.
type Server struct {
	Name, Node string
	Addresses  []netip.Addr
}

// Report of the storage itself: its servers, and the clients of volumes that this node holds.
type Report struct {
	Clients []VolumeClients
	Servers []Server
}

// VolumeClients are the addresses that a volume is open from.
type VolumeClients struct {
	Volume    v1alpha1.HeldVolume
	Addresses []netip.Addr
}

// Class is a NetworkFenceClass object.
type Class struct{ Name, Driver, ClusterID string }

// NetworkFence is a NetworkFence object (csi-addons v1alpha1), as far as it is read and written.
type NetworkFence struct {
	Name            string
	UID             types.UID
	ResourceVersion string
	Labels          map[string]string
	Created         time.Time
	Deleting        bool

	Class, Driver string
	Secret        *v1alpha1.SecretReference
	Parameters    map[string]string
	CIDRs         []string
	// Unfenced is the desired state; else it is Fenced.
	Unfenced bool

	Result, Message string
}

package fence

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// JudgedLabel with the value "true" on a new VolumeAttachment says that Fairlead judges it. Without the label
// the API server judges by its own policies, which see less.
const JudgedLabel = "fairlead.io/judged"

// Holder is a node that has or had a volume.
type Holder struct {
	// Node of the machine; only a name if its object was deleted or another machine has the name (Replaced).
	Node     Node
	Replaced bool
	// Record is the name of its NodeFence, and Status that record's status; zero without a record.
	Record   string
	Status   v1alpha1.NodeFenceStatus
	Override Override
	// InUse: the node's own kubelet has the volume in its status.volumesInUse.
	InUse bool
}

// Held names the node that keeps a volume from being attached elsewhere, and why.
type Held struct {
	Refusal
	Node string
	// Soon: a fence is requested and not refused, so it may be in effect in a moment.
	Soon bool
}

// Attach decides whether a volume may be attached to a node; nil allows it. holders are all nodes that may hold the
// volume, and the node itself. It is refused while another holder is lost and not fenced for the volume's storage, and
// while the node itself is fenced.
//
// A shared file system may have many writers: a holder that is only not Ready blocks no other node. A holder that is
// out of service does, since its pods start elsewhere as if they were the only ones of their name.
func Attach(volume Volume, node string, holders []Holder, policy Policy) *Held {
	if policy.Mode(volume.Driver) == ModeOff || volume.ReadOnly() {
		return nil
	}
	for _, h := range holders {
		held := h.keeps(volume, node)
		if h.Node.Exists && h.Node.Name == node { // a new machine of the holder's name is not the holder
			held = h.gets(volume)
		}
		if held != nil {
			held.Message = Linked(held.Message, held.Reason)
			return held
		}
	}
	return nil
}

// gets returns why a node gets no volume itself: a fence of the machine is on record. The node may be back in a boot that
// Fairlead has not seen, whose addresses may differ, and a volume mounted there would pass for fenced.
func (h Holder) gets(volume Volume) *Held {
	f := Facts{Status: h.Status}
	if !isFencing(h.Status.Phase) || !f.wasRequested() || h.Override.Gate == GateUnfence || h.Override.Gate == GateTaint {
		return nil
	}
	return &Held{Node: h.Node.Name, Refusal: *Refuse(h.Status.Reason, "volume %s can't be attached to node %s: the node is fenced, and was not readmitted yet. Kubernetes tries again by itself; see: kubectl describe nodefence %s",
		volume.Name, h.Node.Name, h.record())}
}

// keeps returns why a holder keeps a volume from being attached to another node; nil if it does not.
func (h Holder) keeps(volume Volume, node string) *Held {
	h.Override = h.Override.still(h.Node)
	givenUp := h.Override.givesUp(h.Node) && (h.Status.Phase == v1alpha1.NodeLost || h.Status.Reason == ReasonSharedAddress)
	if h.Override.Gate == GateAttach || givenUp {
		return nil // known to be off; or given up, and unfenced but for an address that keeps out another node
	}
	if !h.lost(volume.HasManyWriters()) {
		// The volume was detached by force while the node was silent. The node
		// writes to its old mount until its kubelet unmounts the volume.
		if !volume.HasManyWriters() && h.mayHaveMounted(volume) {
			return h.stillMounted(volume, node)
		}
		return nil
	}
	if h.fencedFor(volume) {
		return nil
	}
	// An unanswered fence may still be confirmed at any time.
	soon := h.Status.Phase == v1alpha1.NodeFencing && (h.Status.Reason == ReasonFencing || h.Status.Reason == ReasonUnanswered)
	held := &Held{Node: h.Node.Name, Soon: soon}
	held.Refusal = *Refuse(h.reason(), "volume %s was last on %s, which is lost and not fenced: %s now, it could have two writers. %sKubernetes tries again by itself; see: kubectl describe nodefence %s",
		volume.Name, h.who(), used(node), h.says(), h.record())
	return held
}

func (h Holder) stillMounted(volume Volume, node string) *Held {
	return &Held{Node: h.Node.Name, Soon: true, Refusal: *Refuse(ReasonStillMounted, "volume %s is or was still mounted on node %s, from which it was detached: %s now, it could have two writers. Kubernetes tries again by itself; see: kubectl get nodefence %s -o yaml",
		volume.Name, h.Node.Name, used(node), h.record())}
}

// used says where the volume would be used; an unscheduled pod may run anywhere.
func used(node string) string {
	if node == "" {
		return "used elsewhere"
	}
	return "attached to " + node
}

// mayHaveMounted reports whether a node that is not lost may have a volume mounted. A kubelet also lists volumes
// that it only waits for; a listed volume that is not on record may be mounted.
func (h Holder) mayHaveMounted(v Volume) bool {
	i := find(v.Held(), h.Status.Volumes)
	if i >= 0 && h.Status.Volumes[i].Until != nil {
		return true
	}
	if i >= 0 && wasAway(h.Status, h.Node) {
		return true // the node or its taint has changed, and Fairlead has not recorded that yet
	}
	if !v.exclusive() { // Kubernetes attaches it to several nodes, so a healthy one is no reason
		return h.InUse && i >= 0 && h.Status.Volumes[i].Detached
	}
	waits := i >= 0 && h.Status.Volumes[i].Waiting && h.Status.Node.BootID == h.Node.Machine.BootID
	return h.InUse && !waits
}

// lost reports whether the node may still write without being heard of.
func (h Holder) lost(shared bool) bool {
	n := h.Node
	if isFencing(h.Status.Phase) || !n.Exists || n.OutOfService {
		return true
	}
	return !n.Ready && !shared
}

// fencedFor reports whether the storage of a volume refuses what the node writes.
func (h Holder) fencedFor(v Volume) bool {
	s := h.Status
	if n := h.Node; n.Exists && n.Machine.BootID != s.Node.BootID && s.Node.BootID != "" {
		return false // a volume of the new boot may be mounted by another address
	}
	return isFencing(s.Phase) && slices.ContainsFunc(s.Fences, func(f v1alpha1.Fence) bool {
		return f.Incident == s.Incident && f.State == v1alpha1.FenceFenced && f.Driver == v.Driver && f.ClusterID == v.ClusterID
	})
}

func (h Holder) reason() string {
	if h.Status.Reason != "" && h.Status.Phase != v1alpha1.NodeHealthy {
		return h.Status.Reason
	}
	return ReasonNotReady
}

func (h Holder) who() string {
	if h.Replaced {
		return "the machine that was node " + h.Node.Name + " before"
	}
	return "node " + h.Node.Name
}

// record for more details.
func (h Holder) record() string { return cmp.Or(h.Record, h.Node.Name) }

func (h Holder) says() string {
	if h.Status.Message == "" || h.Status.Phase == v1alpha1.NodeHealthy && h.Status.Reason == ReasonReady {
		return ""
	}
	return fmt.Sprintf("Fairlead reports: %s. ", h.Status.Message)
}

// AddTaint decides whether a node may get the out-of-service taint: Kubernetes then detaches its volumes even if
// they are in use.
func AddTaint(n Node, r Record) *Refusal {
	if !n.Ready || r.Override.Gate == GateTaint {
		return nil
	}
	return Refuse(ReasonTaintedButReady, "node %s is Ready: with this taint Kubernetes takes its volumes away while they are written to. Shut it down first, and wait until it is not Ready; or, if you must: %s",
		n.Name, OverrideCommand(cmp.Or(r.Name, n.Name), GateTaint))
}

// RemoveTaint decides whether the out-of-service taint may be removed. While a node is fenced and has not rebooted,
// its pods would return to mounts that the storage refuses or that belong to others.
func RemoveTaint(n Node, r Record) *Refusal {
	s, o := r.Status, r.Override
	f := Facts{Record: r.Name, Node: n, Status: s, Override: o}
	if o.Gate == GateTaint || o.Gate == GateUnfence || !isFencing(s.Phase) || !f.wasRequested() || f.rebooted() || f.returnedUnfenced() {
		return nil
	}
	return Refuse(ReasonNotRebooted, "node %s is being fenced or is fenced, and has not booted since (boot %q): reboot it first; or, if you must: %s",
		n.Name, s.Node.BootID, f.command(GateTaint))
}

// DeletesWorkingNode is a warning for the user who deletes the Node of a working machine, which then looks like a lost machine; ""
// is none.
func DeletesWorkingNode(n Node, r Record) string {
	if !n.Ready || len(r.Status.Volumes) == 0 {
		return ""
	}
	return fmt.Sprintf("node %s is Ready and has volumes (%s). Without its Node they are held, and after %s the storage blocks the machine, whose pods may still run: cordon and drain a node before you delete it, or restart its kubelet now, which registers it again",
		n.Name, Few(VolumeNames(r.Status.Volumes)), deletedFor)
}

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

// Holder is a boot that may write to a volume.
type Holder struct {
	// Node that has the boot's node name now; only a name if its object was deleted or another machine has the name (Replaced).
	Node     Node
	Replaced bool
	// Record is the name of its NodeFence, and Spec that record's memory; zero without a record.
	Record  string
	Spec    v1alpha1.NodeFenceSpec
	Status  v1alpha1.NodeFenceStatus // for messages
	Request Request
}

// Held names the node that keeps a volume from being attached elsewhere, and why.
type Held struct {
	Refusal
	Node string
	// Soon: a fence is requested and not refused, so it may be in effect in a moment.
	Soon bool
}

// Attach decides whether a volume may be attached to a node; nil allows it. holders are all boots that may write to the volume,
// and the node itself. It is refused while another boot may write to the volume, and while the node itself is fenced.
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

// gets returns why a node gets no volume itself: it is fenced, so a volume that it mounts would pass for fenced.
func (h Holder) gets(volume Volume) *Held {
	if !isOf(h.Spec, h.Node) || !IsClosed(h.Spec) {
		return nil
	}
	return &Held{Node: h.Node.Name, Refusal: *Refuse(cmp.Or(h.Status.Reason, ReasonFencing), "volume %s can't be attached to node %s: the node is fenced, and was not readmitted yet. Kubernetes tries again by itself; see: kubectl describe nodefence %s",
		volume.Name, h.Node.Name, h.record())}
}

// keeps returns why a boot keeps a volume from being attached to another node; nil if it does not.
//
// Where Kubernetes attaches a volume to several nodes, a working node that has it attached is no reason. A shared file system may
// have many writers, so a node that is only not Ready is none either. A node that is out of service is: its pods start elsewhere as
// if they were the only ones of their name.
func (h Holder) keeps(v Volume, node string) *Held {
	s, n := h.Spec, h.Node
	if !MayWrite(s, n, v) {
		return nil
	}
	here := isOf(s, n) || n.Exists && s.Boot == v1alpha1.Boot{} && !s.Unseen
	lost := !here || n.OutOfService || IsClosed(s)
	i := find(v.Held(), s.Volumes)
	inGrace := i >= 0 && s.Volumes[i].Until != nil
	manyWriters := v.HasManyWriters() && (i < 0 || s.Volumes[i].Shared) // a user may edit the modes of a volume that is held
	switch {
	case lost:
	case manyWriters, !v.exclusive() && n.Ready && n.hasAttached(v) && !inGrace && (unbroken(s, n) || s.Boot == v1alpha1.Boot{}):
		return nil
	case n.Ready:
		return h.stillMounted(v, node)
	}
	// An unanswered fence may still be confirmed at any time.
	soon := h.Request.Gate != "" || slices.ContainsFunc(s.Fences, func(r v1alpha1.Fence) bool {
		return r.State == v1alpha1.FenceRequested && r.Failures == 0 && r.Message == ""
	})
	held := &Held{Node: n.Name, Soon: soon}
	held.Refusal = *Refuse(h.reason(), "volume %s was last on %s, which is lost and not fenced: %s now, it could have two writers. %sKubernetes tries again by itself; see: kubectl describe nodefence %s",
		v.Name, h.who(), used(node), h.says(), h.record())
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
	if !n.Ready || r.allows(n, GateTaint) {
		return nil
	}
	return Refuse(ReasonTaintedButReady, "node %s is Ready: with this taint Kubernetes takes its volumes away while they are written to. Shut it down first, and wait until it is not Ready; or, if you must: %s",
		n.Name, OverrideCommand(cmp.Or(r.Name, n.Name), GateTaint))
}

// RemoveTaint decides whether the out-of-service taint may be removed. While a node is fenced and has not rebooted,
// its pods would return to mounts that the storage refuses or that belong to others.
func RemoveTaint(n Node, r Record) *Refusal {
	s := r.Spec
	if !isOf(s, n) || !IsClosed(s) || r.allows(n, GateTaint, GateUnfence) || n.Ready && !slices.ContainsFunc(s.Fences, released) {
		return nil
	}
	return Refuse(ReasonNotRebooted, "node %s is being fenced or is fenced, and has not booted since (boot %q): reboot it first; or, if you must: %s",
		n.Name, s.Boot.BootID, OverrideCommand(cmp.Or(r.Name, n.Name), GateTaint))
}

// DeletesWorkingNode is a warning for the user who deletes the Node of a working machine, which then looks like a lost machine; ""
// is none.
func DeletesWorkingNode(n Node, r Record) string {
	if !n.Ready || len(r.Spec.Volumes) == 0 {
		return ""
	}
	return fmt.Sprintf("node %s is Ready and has volumes (%s). Without its Node they are held, and after %s the storage blocks the machine, whose pods may still run: cordon and drain a node before you delete it, or restart its kubelet now, which registers it again",
		n.Name, Few(VolumeNames(r.Spec.Volumes)), deletedFor)
}

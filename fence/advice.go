package fence

import (
	"strings"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// reasonsPage has a heading for each reason.
const reasonsPage = "docs/fencing-reasons.md"

// PageOf a reason: where it is explained.
func PageOf(reason string) string { return reasonsPage + "#" + strings.ToLower(reason) }

// Advice says in a few words what a node's record waits for, and what to type or do next.
type Advice struct{ WaitsFor, Next string }

// Advise reads a record; name is the record's, node the node's.
func Advise(name, node string, s v1alpha1.NodeFenceStatus) Advice {
	reason := s.Reason
	if reason == ReasonReady && PhaseLabelValue(s) == ReasonStillMounted {
		reason = ReasonStillMounted
	}
	advice, known := advicesByPhase[string(s.Phase)+" "+reason]
	if !known {
		advice = advices[reason]
	}
	fill := strings.NewReplacer("RECORD", name, "NODE", node, "LABEL", LabelValue(node), "TAINT", OutOfServiceTaint)
	return Advice{advice.WaitsFor, fill.Replace(advice.Next)}
}

const (
	describe   = "kubectl describe nodefence RECORD"
	askStorage = "kubectl get networkfences -l " + NodeLabel + "=LABEL -o yaml"
	addTaint   = "kubectl taint nodes NODE TAINT=nodeshutdown:NoExecute   # once the machine is off"
	dropTaint  = "kubectl taint nodes NODE TAINT-"
	reboot     = "reboot the machine"
	drillIt    = "fairlead fences drill NODE"
	watchIt    = "kubectl get nodefence RECORD -w"
)

// Overrides are for whoever knows what Fairlead can't.
var (
	attachByHand = OverrideCommand("RECORD", GateAttach) + "   # once its addresses are blocked by hand, or the machine is off for good"
	giveUp       = OverrideCommand("RECORD", GateUnfence) + "   # once it is known that the machine never comes back"
)

var advices = map[string]Advice{
	ReasonReady:            {"", drillIt},
	ReasonNotFenceable:     {"a proved address, or credentials, before it is lost", drillIt},
	ReasonStillMounted:     {"its kubelet to unmount volumes that were detached by force", watchIt},
	ReasonNotReady:         {"the node to come back, or the out-of-service taint", addTaint},
	ReasonNodeDeleted:      {"a person to say that the machine never comes back", giveUp},
	ReasonReplaced:         {"a person to say that the machine never comes back", giveUp},
	ReasonRenamed:          {"attachments and pods of its former name to go", describe},
	ReasonTaintedButReady:  {"the taint to go, or the node to be shut down", dropTaint},
	ReasonNothingHeld:      {"", "kubectl describe node NODE"},
	ReasonSwitchedOff:      {"csi-addons to take the fence back", askStorage},
	ReasonGuardOnly:        {"a person to fence it by hand", attachByHand},
	ReasonFencing:          {"the storage to confirm", askStorage},
	ReasonDriverFences:     {"one of two parties that fence to be switched off", "kubectl -n fairlead-system edit configmap fairlead"},
	ReasonFenced:           {"pods and attachments to leave the node", "kubectl get pods -A --field-selector spec.nodeName=NODE"},
	ReasonDrained:          {"a reboot", reboot},
	ReasonNotRebooted:      {"a reboot", reboot},
	ReasonTainted:          {"its taint to be removed", dropTaint},
	ReasonSettling:         {"the node to stay Ready for a while", watchIt},
	ReasonOldAttachments:   {"attachments from before the reboot to go", describe},
	ReasonSharedAddress:    {"another fenced node with the same address", describe},
	ReasonUnfencing:        {"the storage to confirm", askStorage},
	ReasonOverridden:       {"", describe},
	ReasonNoIdentity:       {"a person: no address is on record", attachByHand},
	ReasonStaleLedger:      {"a person: the addresses on record are out of date", attachByHand},
	ReasonBadAddress:       {"a person: an address on record is not one host's", attachByHand},
	ReasonAddressInUse:     {"a person: another machine has the address", attachByHand},
	ReasonOutsideRange:     {"clientRanges that include the address", "kubectl -n fairlead-system edit configmap fairlead"},
	ReasonContradicted:     {"a person: Ceph sees the volume in use elsewhere", describe},
	ReasonNoCredentials:    {"a NetworkFenceClass", "kubectl get networkfenceclasses -o yaml"},
	ReasonLeftoverUnfenced: {"a leftover NetworkFence to be deleted", "kubectl get networkfences"},
	ReasonUnanswered:       {"csi-addons to answer", askStorage},
	ReasonDriverFailed:     {"the CSI driver to stop failing", askStorage},
	ReasonNoCSIAddons:      {"csi-addons to be installed", "kubectl get crd networkfences.csiaddons.openshift.io"},
	ReasonWriteFailed:      {"the API server to accept a write", describe},
}

// advicesByPhase are for reasons that mean another thing in one phase.
var advicesByPhase = map[string]Advice{
	string(v1alpha1.NodeHealthy) + " " + ReasonAddressInUse: {"a person: the storage refuses the node", describe},
	string(v1alpha1.NodeFenced) + " " + ReasonAddressInUse:  {"a person: a working node has the address now", giveUp},
	string(v1alpha1.NodeDrained) + " " + ReasonAddressInUse: {"a person: a working node has the address now", giveUp},
}

// Link to the page of a reason, for the end of a message.
func Link(reason string) string { return "; see " + PageOf(reason) }

// Linked is a message that ends with where its reason is explained, unless it says that already.
func Linked(message, reason string) string {
	if message == "" || strings.Contains(message, reasonsPage) {
		return message
	}
	return message + Link(reason)
}

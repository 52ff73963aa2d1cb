package fence

import (
	"strings"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// reasonsPage has a heading for each reason.
const reasonsPage = "docs/fencing-reasons.md"

// PageOf a reason: where it is explained.
func PageOf(reason string) string { return reasonsPage + "#" + strings.ToLower(reason) }

// Advice says in a few words what a node's record waits for, what to type or do next, and what must be so before.
type Advice struct{ WaitsFor, Next, OnlyIf string }

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
	advice.OnlyIf, advice.Next = onlyIf[advice.Next], fill.Replace(advice.Next)
	return advice
}

const (
	describe   = "kubectl describe nodefence RECORD"
	askStorage = "kubectl get networkfences -l " + NodeLabel + "=LABEL -o yaml"
	addTaint   = "kubectl taint nodes NODE TAINT=nodeshutdown:NoExecute"
	dropTaint  = "kubectl taint nodes NODE TAINT-"
	reboot     = "reboot the machine"
	drillIt    = "fairlead fences drill NODE"
	watchIt    = "kubectl get nodefence RECORD -w"
)

// Overrides are for whoever knows what Fairlead can't.
var (
	attachByHand = OverrideCommand("RECORD", GateAttach)
	giveUp       = OverrideCommand("RECORD", GateUnfence)
)

// onlyIf must be so before a command is typed that releases volumes.
var onlyIf = map[string]string{
	addTaint:     "the machine is off",
	attachByHand: "its addresses are blocked by hand, or the machine is off for good",
	giveUp:       "it is known that the machine never comes back",
}

var advices = map[string]Advice{
	ReasonReady:            {WaitsFor: "", Next: drillIt},
	ReasonNotFenceable:     {WaitsFor: "a proved address, or credentials, before it is lost", Next: drillIt},
	ReasonStillMounted:     {WaitsFor: "its kubelet to unmount volumes that were detached by force", Next: watchIt},
	ReasonNotReady:         {WaitsFor: "the node to come back, or the out-of-service taint", Next: addTaint},
	ReasonNodeDeleted:      {WaitsFor: "a person to say that the machine never comes back", Next: giveUp},
	ReasonReplaced:         {WaitsFor: "a person to say that the machine never comes back", Next: giveUp},
	ReasonRenamed:          {WaitsFor: "attachments and pods of its former name to go", Next: describe},
	ReasonTaintedButReady:  {WaitsFor: "the taint to go, or the node to be shut down", Next: dropTaint},
	ReasonNothingHeld:      {WaitsFor: "", Next: "kubectl describe node NODE"},
	ReasonSwitchedOff:      {WaitsFor: "csi-addons to take the fence back", Next: askStorage},
	ReasonGuardOnly:        {WaitsFor: "a person to fence it by hand", Next: attachByHand},
	ReasonFencing:          {WaitsFor: "the storage to confirm", Next: askStorage},
	ReasonDriverFences:     {WaitsFor: "one of two parties that fence to be switched off", Next: "kubectl -n fairlead-system edit configmap fairlead"},
	ReasonFenced:           {WaitsFor: "pods and attachments to leave the node", Next: "kubectl get pods -A --field-selector spec.nodeName=NODE"},
	ReasonDrained:          {WaitsFor: "a reboot", Next: reboot},
	ReasonNotRebooted:      {WaitsFor: "a reboot", Next: reboot},
	ReasonTainted:          {WaitsFor: "its taint to be removed", Next: dropTaint},
	ReasonSettling:         {WaitsFor: "the node to stay Ready for a while", Next: watchIt},
	ReasonOldAttachments:   {WaitsFor: "attachments from before the reboot to go", Next: describe},
	ReasonSharedAddress:    {WaitsFor: "another fenced node with the same address", Next: describe},
	ReasonUnfencing:        {WaitsFor: "the storage to confirm", Next: askStorage},
	ReasonOverridden:       {WaitsFor: "", Next: describe},
	ReasonNoIdentity:       {WaitsFor: "a person: no address is on record", Next: attachByHand},
	ReasonStaleLedger:      {WaitsFor: "a person: the addresses on record are out of date", Next: attachByHand},
	ReasonBadAddress:       {WaitsFor: "a person: an address on record is not one host's", Next: attachByHand},
	ReasonAddressInUse:     {WaitsFor: "a person: another machine has the address", Next: attachByHand},
	ReasonOutsideRange:     {WaitsFor: "clientRanges that include the address", Next: "kubectl -n fairlead-system edit configmap fairlead"},
	ReasonContradicted:     {WaitsFor: "a person: Ceph sees the volume in use elsewhere", Next: describe},
	ReasonNoCredentials:    {WaitsFor: "a NetworkFenceClass", Next: "kubectl get networkfenceclasses -o yaml"},
	ReasonLeftoverUnfenced: {WaitsFor: "a leftover NetworkFence to be deleted", Next: "kubectl get networkfences"},
	ReasonUnanswered:       {WaitsFor: "csi-addons to answer", Next: askStorage},
	ReasonDriverFailed:     {WaitsFor: "the CSI driver to stop failing", Next: askStorage},
	ReasonNoCSIAddons:      {WaitsFor: "csi-addons to be installed", Next: "kubectl get crd networkfences.csiaddons.openshift.io"},
	ReasonWriteFailed:      {WaitsFor: "the API server to accept a write", Next: describe},
}

// advicesByPhase are for reasons that mean another thing in one phase.
var advicesByPhase = map[string]Advice{
	string(v1alpha1.NodeHealthy) + " " + ReasonAddressInUse: {WaitsFor: "a person: the storage refuses the node", Next: describe},
	string(v1alpha1.NodeFenced) + " " + ReasonAddressInUse:  {WaitsFor: "a person: a working node has the address now", Next: giveUp},
	string(v1alpha1.NodeDrained) + " " + ReasonAddressInUse: {WaitsFor: "a person: a working node has the address now", Next: giveUp},
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

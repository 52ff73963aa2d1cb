// Package advice says what a node's record waits for and what to do next.
package advice

import (
	"strings"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// Advice says what a record waits for, the next command or action, and the condition under which it is safe.
type Advice struct{ WaitsFor, Next, OnlyIf string }

// Of a record, by its name and its node's.
func Of(name, node string, s v1alpha1.NodeFenceStatus) Advice {
	advice, known := advicesByPhase[string(s.Phase)+" "+s.Reason]
	if !known {
		advice = advices[s.Reason]
	}
	fill := strings.NewReplacer("RECORD", name, "NODE", node, "LABEL", fence.LabelValue(node), "TAINT", fence.OutOfServiceTaint)
	advice.OnlyIf, advice.Next = onlyIf[advice.Next], fill.Replace(advice.Next)
	return advice
}

const (
	describe   = "kubectl describe nodefence RECORD"
	askStorage = "kubectl get networkfences -l " + fence.NodeLabel + "=LABEL -o yaml"
	addTaint   = "kubectl taint nodes NODE TAINT=nodeshutdown:NoExecute"
	dropTaint  = "kubectl taint nodes NODE TAINT-"
	reboot     = "reboot the machine"
	drillIt    = "fairlead fences drill NODE"
	watchIt    = "kubectl get nodefence RECORD -w"
)

// Overrides are for operators who know more than Fairlead.
var (
	attachByHand = fence.OverrideCommand("RECORD", fence.GateAttach)
	giveUp       = fence.OverrideCommand("RECORD", fence.GateUnfence)
)

// AlsoUnfenced ends the precondition of the taint where the volumes that nothing fences are not known by name.
const AlsoUnfenced = ", also those that nothing fences, such as Longhorn's"

// onlyIf has the condition for commands that release volumes.
var onlyIf = map[string]string{
	addTaint:     "the machine is off: Kubernetes detaches all its volumes by force then" + AlsoUnfenced,
	attachByHand: "its addresses are blocked by hand, or the machine is off for good",
	giveUp:       "it is known that the machine never comes back",
}

var advices = map[string]Advice{
	fence.ReasonReady:            {WaitsFor: "", Next: drillIt},
	fence.ReasonNotFenceable:     {WaitsFor: "a proved address, or credentials, before it is lost", Next: drillIt},
	fence.ReasonStillMounted:     {WaitsFor: "its kubelet to unmount volumes that were detached by force", Next: watchIt},
	fence.ReasonNotReady:         {WaitsFor: "the node to come back, or the out-of-service taint", Next: addTaint},
	fence.ReasonNodeDeleted:      {WaitsFor: "a person to say that the machine never comes back", Next: giveUp},
	fence.ReasonReplaced:         {WaitsFor: "a person to say that the machine never comes back", Next: giveUp},
	fence.ReasonTaintedButReady:  {WaitsFor: "the taint to go, or the node to be shut down", Next: dropTaint},
	fence.ReasonOldMounts:        {WaitsFor: "the machine to be switched off or rebooted", Next: reboot},
	fence.ReasonUnseen:           {WaitsFor: "a person: its last boot is unknown", Next: attachByHand},
	fence.ReasonNothingHeld:      {WaitsFor: "", Next: "kubectl describe node NODE"},
	fence.ReasonSwitchedOff:      {WaitsFor: "csi-addons to withdraw the fence", Next: askStorage},
	fence.ReasonGuardOnly:        {WaitsFor: "a person to fence it by hand", Next: attachByHand},
	fence.ReasonFencing:          {WaitsFor: "the storage to confirm", Next: askStorage},
	fence.ReasonDriverFences:     {WaitsFor: "one of two parties that fence to be switched off", Next: "kubectl -n fairlead-system edit configmap fairlead"},
	fence.ReasonFenced:           {WaitsFor: "pods and attachments to leave the node", Next: "kubectl get pods -A --field-selector spec.nodeName=NODE"},
	fence.ReasonDrained:          {WaitsFor: "a reboot", Next: reboot},
	fence.ReasonNotRebooted:      {WaitsFor: "a reboot", Next: reboot},
	fence.ReasonTainted:          {WaitsFor: "its taint to be removed", Next: dropTaint},
	fence.ReasonSettling:         {WaitsFor: "the node to stay Ready for a while", Next: watchIt},
	fence.ReasonOldAttachments:   {WaitsFor: "attachments from before the reboot to go", Next: describe},
	fence.ReasonSharedAddress:    {WaitsFor: "another fenced node with the same address", Next: describe},
	fence.ReasonUnfencing:        {WaitsFor: "the storage to confirm", Next: askStorage},
	fence.ReasonOverridden:       {WaitsFor: "", Next: describe},
	fence.ReasonReleased:         {WaitsFor: "the node to come back, or the out-of-service taint", Next: addTaint},
	fence.ReasonNoIdentity:       {WaitsFor: "a person: no address is on record", Next: attachByHand},
	fence.ReasonStaleLedger:      {WaitsFor: "a person: the addresses on record are out of date", Next: attachByHand},
	fence.ReasonBadAddress:       {WaitsFor: "a person: an address on record is not one host's", Next: attachByHand},
	fence.ReasonAddressInUse:     {WaitsFor: "a person: another machine has the address", Next: attachByHand},
	fence.ReasonOutsideRange:     {WaitsFor: "clientRanges that include the address", Next: "kubectl -n fairlead-system edit configmap fairlead"},
	fence.ReasonContradicted:     {WaitsFor: "a person: Ceph sees the volume in use elsewhere", Next: describe},
	fence.ReasonNoCredentials:    {WaitsFor: "a NetworkFenceClass", Next: "kubectl get networkfenceclasses -o yaml"},
	fence.ReasonLeftoverUnfenced: {WaitsFor: "a leftover NetworkFence to be deleted", Next: "kubectl get networkfences"},
	fence.ReasonUnanswered:       {WaitsFor: "csi-addons to answer", Next: askStorage},
	fence.ReasonDriverFailed:     {WaitsFor: "the CSI driver to stop failing", Next: askStorage},
	fence.ReasonNoCSIAddons:      {WaitsFor: "csi-addons to be installed", Next: "kubectl get crd networkfences.csiaddons.openshift.io"},
	fence.ReasonWriteFailed:      {WaitsFor: "the API server to accept a write", Next: describe},
}

// advicesByPhase are for reasons that mean another thing in one phase.
var advicesByPhase = map[string]Advice{
	string(v1alpha1.NodeHealthy) + " " + fence.ReasonAddressInUse: {WaitsFor: "a person: the storage refuses the node", Next: describe},
	string(v1alpha1.NodeFenced) + " " + fence.ReasonAddressInUse:  {WaitsFor: "a person: a working node has the address now", Next: giveUp},
	string(v1alpha1.NodeDrained) + " " + fence.ReasonAddressInUse: {WaitsFor: "a person: a working node has the address now", Next: giveUp},
}

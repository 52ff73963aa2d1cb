package fence

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// Break-glass overrides: an operator knows more than Fairlead can, and answers for it.
const (
	// OverrideAnnotation on a NodeFence requests to override a gate of its node:
	// "<gate>: <reason>".
	OverrideAnnotation = "fairlead.io/override-gate"
	// OverriddenAnnotation is written by Fairlead's webhook when it admits an
	// override: an Override as JSON. It stays for the record.
	OverriddenAnnotation = "fairlead.io/gate-overridden"
	// OverrideVerb on nodefences.fairlead.io is what RBAC must allow.
	OverrideVerb = "override-gate"
)

// Gates that can be overridden.
const (
	// GateAttach: the node is known to be off, so its volumes may be attached
	// elsewhere although it is not fenced.
	GateAttach = "attach"
	// GateUnfence: the machine never returns or is known to be clean, so it is
	// unfenced without a reboot and holds no volumes.
	GateUnfence = "unfence"
	// GateTaint: the out-of-service taint may be added or removed although it should not.
	GateTaint = "taint"
)

// Gates lists them.
func Gates() []string { return []string{GateAttach, GateUnfence, GateTaint} }

// Override is who overrode which gate, why, and in which incident.
type Override struct {
	Gate   string    `json:"gate"`
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	Scope  string    `json:"scope"`
	At     time.Time `json:"at"`
}

// givesUp reports whether the override gives up a node that is still lost: it is neither fenced again nor held. The
// override ends when the node returns. A machine without Node object never does.
func (o Override) givesUp(n Node) bool {
	return o.Gate == GateUnfence && (!n.Exists || !n.Ready && !n.ReadyChanged.After(o.At))
}

// still is the override, unless the machine returned since, Ready or lost again: it may have mounted more. Any later change
// of the Ready condition counts as a return.
func (o Override) still(n Node) Override {
	if o.Gate == GateAttach && n.Exists && n.ReadyChanged.After(o.At) {
		return Override{}
	}
	return o
}

// OverrideCommand overrides a gate of a machine by hand. It overwrites, since the annotation of an ended incident stays.
func OverrideCommand(record, gate string) string {
	return fmt.Sprintf("kubectl annotate --overwrite nodefence %s '%s=%s: <why>'", record, OverrideAnnotation, gate)
}

// ParseOverride reads a request: "<gate>: <reason>".
func ParseOverride(text string) (gate, reason string, ok bool) {
	gate, reason, found := strings.Cut(text, ":")
	gate, reason = strings.TrimSpace(gate), strings.TrimSpace(reason)
	return gate, reason, found && reason != "" && slices.Contains(Gates(), gate)
}

// Scope limits an override to one incident or, without an incident, to one boot.
func Scope(s v1alpha1.NodeFenceStatus) string {
	if s.Incident != "" {
		return s.Incident
	}
	return "boot " + s.Node.BootID
}

// ReadOverride returns the override in effect for a node. A request that the webhook has not admitted for this gate,
// reason and incident overrides nothing.
func ReadOverride(annotations map[string]string, s v1alpha1.NodeFenceStatus) Override {
	gate, reason, asked := ParseOverride(annotations[OverrideAnnotation])
	var o Override
	if !asked || json.Unmarshal([]byte(annotations[OverriddenAnnotation]), &o) != nil {
		return Override{}
	}
	if s.Incident == "" && gate != GateTaint {
		return Override{} // given outside of an incident
	}
	if o.Gate != gate || o.Reason != reason || o.Scope != Scope(s) || o.By == "" {
		return Override{}
	}
	return o
}

// Text of an override, as OverriddenAnnotation keeps it.
func (o Override) Text() string {
	text, err := json.Marshal(o)
	if err != nil {
		return "" // it is made of strings and a time of this era
	}
	return string(text)
}

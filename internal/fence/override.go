package fence

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// Breaking the glass: an operator knows more than Fairlead can, and answers for it.
const (
	// OverrideAnnotation on a NodeFence asks for a gate of its node to be
	// overridden: "<gate>: <reason>".
	OverrideAnnotation = "fairlead.io/override-gate"
	// OverriddenAnnotation is written by Fairlead's webhook when it lets an
	// override pass: an Override as JSON. It stays for the record.
	OverriddenAnnotation = "fairlead.io/gate-overridden"
	// OverrideVerb on nodefences.fairlead.io is what RBAC must allow.
	OverrideVerb = "override-gate"
)

// Gates that can be overridden.
const (
	// GateAttach: the node is known to be off, so its volumes may be attached
	// elsewhere although it is not fenced.
	GateAttach = "attach"
	// GateUnfence: what was lost does not come back, or is known to be clean, so it
	// is let in although it has not booted anew, and holds nothing any more.
	GateUnfence = "unfence"
	// GateTaint: the out-of-service taint may come or go although it should not.
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

// givesUp tells whether a node that is let in by override is lost still: not fenced
// again, nor held. It holds until the node is back; lost anew, it is another matter.
// A machine without Node object does not come back as what it was.
func (o Override) givesUp(n Node) bool {
	return o.Gate == GateUnfence && (!n.Exists || !n.Ready && !n.ReadyChanged.After(o.At))
}

// still is the override, unless it is of a loss before this one: a machine that was known to be off, and was back
// while Fairlead did not look, may have mounted more. That a node says anything else of itself counts as having been back.
func (o Override) still(n Node) Override {
	if o.Gate == GateAttach && n.Exists && !n.Ready && n.ReadyChanged.After(o.At) {
		return Override{}
	}
	return o
}

// OverrideCommand asks for a gate of a machine, by hand, on its NodeFence. What was asked for in an incident that is
// over is still there: nobody takes it away.
func OverrideCommand(record, gate string) string {
	return fmt.Sprintf("kubectl annotate --overwrite nodefence %s '%s=%s: <why>'", record, OverrideAnnotation, gate)
}

// ParseOverride reads a request: "<gate>: <reason>".
func ParseOverride(text string) (gate, reason string, ok bool) {
	gate, reason, found := strings.Cut(text, ":")
	gate, reason = strings.TrimSpace(gate), strings.TrimSpace(reason)
	return gate, reason, found && reason != "" && slices.Contains(Gates(), gate)
}

// Scope is what an override is bound to: one incident, or, of a node that has
// none, one run of its machine.
func Scope(s v1alpha1.NodeFenceStatus) string {
	if s.Incident != "" {
		return s.Incident
	}
	return "boot " + s.Node.BootID
}

// ReadOverride returns the override that holds for a node as it is now. An
// annotation alone overrides nothing, nor does one that was let pass for another
// incident, gate or reason.
func ReadOverride(annotations map[string]string, s v1alpha1.NodeFenceStatus) Override {
	gate, reason, asked := ParseOverride(annotations[OverrideAnnotation])
	var o Override
	if !asked || json.Unmarshal([]byte(annotations[OverriddenAnnotation]), &o) != nil {
		return Override{}
	}
	if s.Incident == "" && gate != GateTaint {
		return Override{} // given in an incident that is over, or before there was one
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

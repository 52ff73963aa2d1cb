package fence

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// Break-glass: a person knows more than Fairlead can, and answers for it. What a person says is an act: it is carried out once, on
// what is on record then, and is over.
const (
	// OverrideAnnotation on a NodeFence asks to override a gate of its node: "<gate>: <reason>".
	OverrideAnnotation = "fairlead.io/override-gate"
	// OverriddenAnnotation is written by Fairlead's webhook when it admits an override: a Request as JSON. The controller
	// removes both annotations when it carries out the act.
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

// Request is what a person asks, and who that is. The zero value asks nothing.
type Request struct {
	Gate   string    `json:"gate"`
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// OverrideCommand overrides a gate of a machine by hand.
func OverrideCommand(record, gate string) string {
	return fmt.Sprintf("kubectl annotate nodefence %s '%s=%s: <why>'", record, OverrideAnnotation, gate)
}

// ParseOverride reads a request: "<gate>: <reason>".
func ParseOverride(text string) (gate, reason string, ok bool) {
	gate, reason, found := strings.Cut(text, ":")
	gate, reason = strings.TrimSpace(gate), strings.TrimSpace(reason)
	return gate, reason, found && reason != "" && slices.Contains(Gates(), gate)
}

// ReadRequest returns what a person asks of a record. What the webhook has not admitted for this gate and reason asks nothing.
func ReadRequest(annotations map[string]string) Request {
	gate, reason, asked := ParseOverride(annotations[OverrideAnnotation])
	var r Request
	if !asked || json.Unmarshal([]byte(annotations[OverriddenAnnotation]), &r) != nil || r.Gate != gate || r.Reason != reason || r.By == "" {
		return Request{}
	}
	return r
}

// Text of a request, as OverriddenAnnotation keeps it.
func (r Request) Text() string {
	text, err := json.Marshal(r)
	if err != nil {
		return "" // it is made of strings and a time of this era
	}
	return string(text)
}

// InIncident reports whether a boot is lost, fenced or over, or withholds volumes.
func InIncident(s v1alpha1.NodeFenceSpec) bool { return IsLost(s) || len(s.Withheld) > 0 }

// IsLost reports whether there is anything that a person can say of the machine: it is lost, or fenced, or its boot is over. What a
// working node lists, its kubelet has to give back.
func IsLost(s v1alpha1.NodeFenceSpec) bool { return s.LostSince != nil || len(s.Fences) > 0 || s.Over }

// WasMade reports whether a request repeats one on record, void or not: a file that is applied again is no new act.
func WasMade(s v1alpha1.NodeFenceSpec, gate, reason, by string) bool {
	return slices.ContainsFunc(s.Acts, func(a v1alpha1.Act) bool { return a.Gate == gate && a.Reason == reason && a.By == by })
}

// maxActs on record.
const maxActs = 16

// act carries out a request, or what the configuration says in a person's place. A request that was made of another state of the
// node, which the record did not have yet, is void.
func (f Facts) act(step *Step, r Request) {
	s := &step.Spec
	if r.Gate == "" {
		return
	}
	step.Consumed = f.Request.Gate != ""
	a := v1alpha1.Act{Gate: r.Gate, By: r.By, Reason: Clip(r.Reason, 512), At: metav1.NewTime(r.At), Of: f.readyChanged()}
	if !f.sameAsRecorded() || r.Gate != GateTaint && !IsLost(*s) {
		if step.Consumed {
			a.Void = true
			step.Void, s.Acts = &a, withAct(s.Acts, a)
		}
		return
	}
	if r.Gate != GateTaint {
		for i := range s.Volumes {
			v := &s.Volumes[i]
			if v.Released = !f.working(); !v.Released {
				v.Until = nil // its old containers have ended
			}
			a.Volumes++
		}
	}
	for i := range s.Fences {
		switch r.Gate {
		case GateAttach:
			s.Fences[i].VolumesReleased = true
		case GateUnfence:
			f.markUnfencing(&s.Fences[i])
		}
	}
	s.Acts = withAct(s.Acts, a)
}

func withAct(acts []v1alpha1.Act, a v1alpha1.Act) []v1alpha1.Act {
	acts = append(slices.Clip(acts), a)
	if len(acts) <= maxActs {
		return acts
	}
	oldest := max(0, slices.IndexFunc(acts, func(a v1alpha1.Act) bool { return a.Void })) // void ones first
	return slices.Delete(acts, oldest, oldest+1)
}

// sameAsRecorded reports whether the Node is as the record has it, so that what a person saw in the record holds.
func (f Facts) sameAsRecorded() bool {
	s := f.Spec
	if !f.here() {
		return s.NodeUID == "" || s.Over
	}
	return isSameState(s, f.Node.UID, f.Node.ReadyChanged)
}

func (f Facts) readyChanged() *metav1.Time {
	if !f.Node.Exists || f.Node.ReadyChanged.IsZero() {
		return nil
	}
	return ptr.To(metav1.NewTime(f.Node.ReadyChanged))
}

// allows reports whether a person has said of the node's present state that its taint may change.
func (r Record) allows(n Node, gates ...string) bool {
	if slices.Contains(gates, r.Request.Gate) && isSameState(r.Spec, n.UID, n.ReadyChanged) {
		return true // it is about to be carried out
	}
	return slices.ContainsFunc(r.Spec.Acts, func(a v1alpha1.Act) bool {
		return !a.Void && slices.Contains(gates, a.Gate) && a.Of != nil && a.Of.Time.Equal(n.ReadyChanged)
	})
}

// lastAct by which volumes were released.
func lastAct(s v1alpha1.NodeFenceSpec, gates ...string) (v1alpha1.Act, bool) {
	for i := len(s.Acts) - 1; i >= 0; i-- {
		if !s.Acts[i].Void && slices.Contains(gates, s.Acts[i].Gate) {
			return s.Acts[i], true
		}
	}
	return v1alpha1.Act{}, false
}

// giveUpBy names the configuration where an act names a person.
const giveUpBy = "fencing.giveUp"

// givenUp is what the configuration says of a machine that is gone for long: it is fenced, and nothing is left of it.
func (f Facts) givenUp() Request {
	s := f.Spec
	drained := !f.Node.Exists && len(f.Left) == 0 || f.replaced()
	if f.Policy.GiveUpAfter == 0 || s.Over || s.Unseen || f.here() || !drained || !IsClosed(s) || slices.ContainsFunc(f.protected(s.Volumes), func(v v1alpha1.HeldVolume) bool {
		return !refused(s, Volume{Driver: v.Driver, ClusterID: v.ClusterID})
	}) {
		return Request{}
	}
	if age, known := f.elapsed(s.LostSince); !known || age < f.Policy.GiveUpAfter {
		return Request{}
	}
	return Request{Gate: GateUnfence, By: giveUpBy, Reason: fmt.Sprintf("it was lost more than %s ago", f.Policy.GiveUpAfter), At: f.Now}
}

// lookWhenGivenUp schedules a look for when the machine may be given up.
func (f Facts) lookWhenGivenUp(step *Step) {
	if f.Policy.GiveUpAfter == 0 || f.here() || step.Spec.Over || len(step.Spec.Fences) == 0 || step.Spec.LostSince == nil {
		return
	}
	age, _ := f.elapsed(step.Spec.LostSince)
	if wait := f.Policy.GiveUpAfter - age; wait > 0 {
		step.lookAgain(wait)
	}
}

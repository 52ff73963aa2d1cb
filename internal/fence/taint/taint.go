// Package taint decides whether Fairlead marks a lost node as out of service in an operator's place.
package taint

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// Rules of automatic tainting, from the configuration: Fairlead marks a lost node as out of service in an operator's
// place.
//
// A silent node may still run behind a dead kubelet or a broken network. Fencing makes the taint safe for protected
// volumes only: a pod of a StatefulSet without such volumes may run twice. So every rule errs on doing nothing, and
// tainting is off by default.
type Rules struct {
	// Mode; the zero value is off.
	Mode Mode
	// NotReadyFor is how long a node must have been lost.
	NotReadyFor time.Duration
	// NodeSelector of the nodes that may be tainted; nil: all but control-plane nodes.
	NodeSelector labels.Selector
	// MaxNodes that have Fairlead's taint, or had it and are not healthy yet, at a time.
	MaxNodes int
	// MaxShare, in percent, of a zone's nodes that may be not Ready or tainted when
	// one of them is tainted, which counts too.
	MaxShare int
	// StormNodes and StormShare, in percent of all nodes: more than the greater of
	// the two, lost within StormWindow of each other, are a storm.
	StormNodes, StormShare int
	StormWindow            time.Duration
	// MaxStaleness limits the age of the reading that is decided on, and of the last
	// sign of life of any node.
	MaxStaleness time.Duration
	// ForceDetach names unprotected drivers whose volumes Kubernetes may detach by
	// force: their storage itself detaches from the old node.
	ForceDetach []string
}

// Mode is whether nodes are tainted.
type Mode string

// Modes of automatic tainting.
const (
	Off Mode = "off"
	// DryRun: only report what would be done.
	DryRun Mode = "dryRun"
	On     Mode = "on"
)

// Defaults of Rules, for zero values. No omitted field makes Fairlead act sooner.
const (
	// DefaultNotReadyFor is about how long Kubernetes waits before it evicts
	// the pods of a node (tolerationSeconds of DefaultTolerationSeconds: 300).
	DefaultNotReadyFor = 5 * time.Minute
	// DefaultMaxNodes: the second node waits until the first is back, or for an operator.
	DefaultMaxNodes = 1
	// DefaultMaxShare allows one of three nodes, but not one of two.
	DefaultMaxShare = 34
	// DefaultStormNodes and DefaultStormShare: two nodes may break on one day; more
	// than that and a fifth of all have a common cause outside of the nodes.
	DefaultStormNodes  = 2
	DefaultStormShare  = 20
	DefaultStormWindow = 5 * time.Minute
	// DefaultMaxStaleness is six renewals of a node's lease (every 10 s: a quarter of
	// nodeLeaseDurationSeconds, k8s.io/kubernetes/pkg/kubelet/kubelet.go).
	DefaultMaxStaleness = time.Minute
)

// Check the values.
func (t Rules) Check() error {
	switch t.Mode {
	case "", Off, DryRun, On:
	default:
		return fmt.Errorf("mode %q is none of %s, %s, %s", t.Mode, Off, DryRun, On)
	}
	for _, share := range []int{t.MaxShare, t.StormShare} {
		if share < 0 || share > 100 {
			return fmt.Errorf("%d is no share in percent", share)
		}
	}
	if t.NotReadyFor < 0 || t.StormWindow < 0 || t.MaxStaleness < 0 || t.MaxNodes < 0 || t.StormNodes < 0 {
		return fmt.Errorf("durations and numbers of nodes are not negative")
	}
	return nil
}

// Defaulted replaces zero values by the defaults.
func (t Rules) Defaulted() Rules {
	t.Mode = cmp.Or(t.Mode, Off)
	t.NotReadyFor = cmp.Or(t.NotReadyFor, DefaultNotReadyFor)
	t.MaxNodes = cmp.Or(t.MaxNodes, DefaultMaxNodes)
	t.MaxShare = cmp.Or(t.MaxShare, DefaultMaxShare)
	t.StormNodes = cmp.Or(t.StormNodes, DefaultStormNodes)
	t.StormShare = cmp.Or(t.StormShare, DefaultStormShare)
	t.StormWindow = cmp.Or(t.StormWindow, DefaultStormWindow)
	t.MaxStaleness = cmp.Or(t.MaxStaleness, DefaultMaxStaleness)
	if t.NodeSelector == nil {
		t.NodeSelector = labels.Everything()
	}
	return t
}

// Facts are what is known of all nodes.
type Facts struct {
	Now time.Time
	// Read is when the reading of the API server began.
	Read time.Time
	// Paused by Switch.
	Paused bool
	Policy fence.Policy
	// Nodes are all nodes of the cluster.
	Nodes []Candidate
}

// Candidate is what is read of one node.
type Candidate struct {
	Node    fence.Node
	Labels  map[string]string
	Created time.Time
	// Cordoned: no pods are scheduled to it. Deleting: its object is on its way out.
	Cordoned, Deleting bool
	// OptedOut by NoTaintAnnotation.
	OptedOut bool
	// Heartbeat is when its kubelet last renewed its lease or posted its status, by
	// the node's own clock; zero if that is not known.
	Heartbeat time.Time
	// Drivers of all volumes that its status lists as attached or in use.
	Drivers []string
	// Record is the name of the NodeFence of its present boot, and Spec its memory; zero values if it has none.
	Record string
	Spec   v1alpha1.NodeFenceSpec
	// Refused is why the node could not be fenced, by fence.Unfenceable on all of fence.Facts;
	// nil if it could or was not checked.
	Refused *fence.Refusal
	// Given: Fairlead has tainted the node in this incident, whether or not Spec has that yet.
	Given bool
}

// Verdict on one node that is not Ready.
type Verdict struct {
	fence.Refusal
	Node   string
	Action Action
	// Since is when the node was lost.
	Since time.Time
	// After is when to look again without an event; 0: unknown.
	After time.Duration
}

// Action is what to do about a node.
type Action string

// Actions. None is chosen in every doubt.
const (
	None  Action = "none"
	Would Action = "wouldTaint"
	Now   Action = "taint"
)

// Judge decides for every node that is not Ready whether to taint it, in the order of their losses. All nodes with the
// verdict Now may be tainted, in this order.
func (t Rules) Judge(f Facts) []Verdict { return t.verdicts(f, false) }

// Glance is Judge without the check of freshness, for cached facts without heartbeats. It shows whether a closer look is
// worthwhile. Nothing may be done on it.
func (t Rules) Glance(f Facts) []Verdict { return t.verdicts(f, true) }

func (t Rules) verdicts(f Facts, glance bool) []Verdict {
	j := judge{Rules: t.Defaulted(), Facts: f, glance: glance}
	j.own = j.ownTaints()
	var verdicts []Verdict
	for _, n := range j.lost() {
		v := Verdict{Node: n.Node.Name, Action: None, Since: j.since(n)}
		if refusal := j.refuse(n); refusal != nil {
			v.Refusal = *refusal
			if refusal.Reason == ReasonNotYet {
				v.After = j.NotReadyFor - f.Now.Sub(v.Since)
			}
		} else {
			j.own[n.Node.Name] = true // the next one is judged with this one tainted
			v.Refusal = *fence.Refuse(ReasonLost, "node %s has been silent since %s and can be fenced: %s", v.Node, v.Since.UTC().Format(time.RFC3339), fence.Few(fence.VolumeNames(n.Spec.Volumes)))
			v.Action = Would
			if j.Mode == On {
				v.Action = Now
			}
		}
		verdicts = append(verdicts, v)
	}
	return verdicts
}

// judge is one decision about all nodes.
type judge struct {
	Rules
	Facts
	// glance leaves out how fresh the facts are.
	glance bool
	// own are the nodes with Fairlead's taint, those of this decision included.
	own map[string]bool
}

// lost are the nodes to judge, in order.
func (j *judge) lost() []Candidate {
	var nodes []Candidate
	for _, n := range j.Nodes {
		if n.Node.Exists && !n.Node.Ready {
			nodes = append(nodes, n)
		}
	}
	slices.SortFunc(nodes, func(a, b Candidate) int {
		return cmp.Or(j.since(a).Compare(j.since(b)), cmp.Compare(a.Node.Name, b.Node.Name))
	})
	return nodes
}

// since is when a node was lost: when the node controller marked it, or a later heartbeat. A heartbeat in the future
// only shows that the node's clock is wrong.
func (j *judge) since(n Candidate) time.Time {
	if n.Heartbeat.After(n.Node.ReadyChanged) && !n.Heartbeat.After(j.Now.Add(j.MaxStaleness)) {
		return n.Heartbeat
	}
	return n.Node.ReadyChanged
}

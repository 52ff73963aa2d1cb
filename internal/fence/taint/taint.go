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

// Rules is what the configuration says of automatic tainting: Fairlead itself
// saying that a lost node is out of service, in an operator's place.
//
// It is the one thing here that is done unasked, on no more than silence: the node
// may run on behind a dead kubelet or a broken network. What fences makes that safe
// for the volumes, and for nothing else: Kubernetes also gives up the node's other
// pods, so one of a StatefulSet without protected volumes may run twice. Hence every
// rule below errs to doing nothing, and it is off unless it is asked for.
type Rules struct {
	// Mode; the zero value is off.
	Mode Mode
	// NotReadyFor is how long a node must have been lost.
	NotReadyFor time.Duration
	// NodeSelector of the nodes that may be tainted; nil: all but control-plane nodes.
	NodeSelector labels.Selector
	// MaxNodes that carry Fairlead's taint, or have carried it and are not healthy again, at a time.
	MaxNodes int
	// MaxShare, in percent, of a zone's nodes that may be not Ready or tainted when
	// one of them is tainted, that one included.
	MaxShare int
	// StormNodes and StormShare, in percent of all nodes: more than the greater of
	// the two, lost within StormWindow of each other, are a storm.
	StormNodes, StormShare int
	StormWindow            time.Duration
	// MaxStaleness of what is known of the cluster: how old the reading may be that
	// is decided on, and how long ago the last of all nodes may have been heard of.
	MaxStaleness time.Duration
	// ForceDetach names drivers that are not protected, and whose volumes Kubernetes
	// may take by force all the same: their storage detaches by itself what it attaches.
	ForceDetach []string
}

// Mode is whether nodes are tainted.
type Mode string

// Modes of automatic tainting.
const (
	Off Mode = "off"
	// DryRun: say what would be done, and leave it.
	DryRun Mode = "dryRun"
	On     Mode = "on"
)

// Defaults of Rules, which zero values stand for: no field that was left out
// makes it quicker to act.
const (
	// DefaultNotReadyFor is about what Kubernetes itself waits before it gives up
	// the pods of a node (tolerationSeconds of DefaultTolerationSeconds: 300).
	DefaultNotReadyFor = 5 * time.Minute
	// DefaultMaxNodes: the second one waits until the first is back, or for an operator.
	DefaultMaxNodes = 1
	// DefaultMaxShare lets one of three nodes go, and not one of two.
	DefaultMaxShare = 34
	// DefaultStormNodes and DefaultStormShare: two may break on one day; more, or a
	// fifth of all, have a cause in common, and it may not be theirs.
	DefaultStormNodes  = 2
	DefaultStormShare  = 20
	DefaultStormWindow = 5 * time.Minute
	// DefaultMaxStaleness is six renewals of a node's lease (every 10 s: a quarter of
	// nodeLeaseDurationSeconds, k8s.io/kubernetes/pkg/kubelet/kubelet.go).
	DefaultMaxStaleness = time.Minute
)

// Check says what is wrong with the values.
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

// Defaulted fills in what was left out.
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
	// Read is when the reading of the API server began that all of this is from.
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
	// Record is the name of its NodeFence, and Status what that says; zero values if it has none.
	Record string
	Status v1alpha1.NodeFenceStatus
	// Refused is why the node could not be fenced, by a closer look at the storage than
	// the facts here allow (fence.Unfenceable with all of fence.Facts); nil if there was none.
	Refused *fence.Refusal
	// Given: Fairlead remembers to have tainted the node in this incident, whether
	// or not that is in Status already.
	Given bool
}

// Verdict is what becomes of one node that is not Ready, and why.
type Verdict struct {
	fence.Refusal
	Node   string
	Action Action
	// Since is when the node was lost.
	Since time.Time
	// After is when to look again though nothing has happened; 0: nothing is known of that.
	After time.Duration
}

// Action is what to do about a node.
type Action string

// Actions. None is what is done on every doubt.
const (
	None  Action = "none"
	Would Action = "wouldTaint"
	Now   Action = "taint"
)

// Judge decides for every node that is not Ready whether it is tainted, the one
// that was lost first coming first. Verdicts hold together: those that say so may
// all be tainted, in this order.
func (t Rules) Judge(f Facts) []Verdict { return t.verdicts(f, false) }

// Glance is Judge but for how fresh the facts are, for a cache, which has neither
// heartbeats nor a time of its reading: it reports whether a closer look is worth it.
// Nothing may be done on it.
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
			v.Refusal = *fence.Refuse(ReasonLost, "nothing was heard of node %s since %s, and it can be fenced: %s", v.Node, v.Since.UTC().Format(time.RFC3339), fence.Few(fence.VolumeNames(n.Status.Volumes)))
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

// since is when a node was lost: when Kubernetes' node controller said so, or when
// it was heard of after that. A heartbeat of the future says nothing but that the
// node's clock is wrong.
func (j *judge) since(n Candidate) time.Time {
	if n.Heartbeat.After(n.Node.ReadyChanged) && !n.Heartbeat.After(j.Now.Add(j.MaxStaleness)) {
		return n.Heartbeat
	}
	return n.Node.ReadyChanged
}

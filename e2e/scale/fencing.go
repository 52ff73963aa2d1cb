package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fairlead-io/fairlead/bench/apiserver"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/fence"
)

const (
	fencedVolumes = 20 // of each node
	mostHolders   = 1000
	rack          = 100
	// heartbeat is how often a kubelet writes its node's status when nothing changes (nodeStatusReportFrequency).
	heartbeat = 5 * time.Minute
	// lease is how often a kubelet renews its lease.
	lease       = 10 * time.Second
	steadyTime  = 30 * time.Second
	mostWaiting = 2 * time.Minute
)

// Targets at any size.
const (
	mostCores    = 0.05
	mostRequests = 40
	mostJudging  = 50 * time.Millisecond
	mostRackTime = 10 * time.Second
)

// fencingResult has the measurements at one size, and the reasons of those that failed.
type fencingResult struct {
	nodes, holders int
	webhook, ctrl  processCost
	steadyCalls    map[apiserver.Call]int
	incident       map[apiserver.Call]int
	incidentTime   time.Duration
	median, worst  time.Duration
	rackNodes      int
	rackTime       time.Duration
	rackCalls      map[apiserver.Call]int
	failed         []error
}

// runFencing measures fencing's cost with all sizes, against a stand-in of the API server: there are no pods of
// workloads, no admission, and NetworkFences are confirmed at once.
func runFencing(ctx context.Context, out io.Writer, binary string, sizes []int, args []string) error {
	var results []fencingResult
	for _, nodes := range sizes {
		fmt.Fprintf(out, "%d nodes: starting\n", nodes)
		r, err := fencingAt(ctx, binary, nodes, args)
		if err != nil {
			return fmt.Errorf("at %d nodes: %w", nodes, err)
		}
		results = append(results, r)
		for _, err := range r.failed {
			fmt.Fprintf(out, "%d nodes: %v\n", nodes, err)
		}
	}
	return writeFencing(out, results)
}

// fencedCluster is a cluster with Fairlead's webhook and controller beside it.
type fencedCluster struct {
	*apiserver.Changing
	webhook, controller *process
	address             string // of the webhook
}

func fencingAt(ctx context.Context, binary string, nodes int, args []string) (r fencingResult, err error) {
	scheme, err := cluster.NewScheme()
	if err != nil {
		return r, err
	}
	r.nodes, r.holders, r.rackNodes = nodes, min(mostHolders, nodes), min(rack, nodes/5)
	still, err := apiserver.NewFencing(scheme, apiserver.FencingSize{Nodes: nodes, VolumesEach: fencedVolumes, Holders: r.holders})
	if err != nil {
		return r, err
	}
	api, err := apiserver.NewChanging(still)
	if err != nil {
		return r, err
	}
	c := &fencedCluster{Changing: api}
	stop, err := c.start(ctx, binary, args)
	defer func() { err = errors.Join(err, stop()) }()
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go c.heartbeats(ctx, nodes)
	if err := c.settle(ctx); err != nil {
		return r, err
	}
	if err := c.steady(ctx, &r); err != nil {
		return r, err
	}
	if r.median, r.worst, err = c.judge(ctx); err != nil {
		r.failed = append(r.failed, fmt.Errorf("attachments: %w", err))
	}
	before := c.Calls()
	if r.incidentTime, err = c.lose(ctx, nodeNames(1, 1)); err != nil {
		r.failed = append(r.failed, fmt.Errorf("one node lost: %w", err))
	}
	r.incident = since(before, c.Calls())
	before = c.Calls()
	if r.rackTime, err = c.lose(ctx, nodeNames(2, r.rackNodes)); err != nil {
		r.failed = append(r.failed, fmt.Errorf("a rack lost: %w", err))
	}
	r.rackCalls = since(before, c.Calls())
	return r, nil
}

func nodeNames(from, many int) []string {
	var names []string
	for i := range many {
		names = append(names, apiserver.NodeName(from+i))
	}
	return names
}

// heartbeats writes what kubelets do.
func (c *fencedCluster) heartbeats(ctx context.Context, nodes int) {
	gap := func() time.Duration { return time.Duration(rand.ExpFloat64() * float64(heartbeat) / float64(nodes)) } // nodes are independent
	status, leases := time.NewTimer(gap()), time.NewTicker(lease/time.Duration(nodes))
	defer status.Stop()
	defer leases.Stop()
	for i := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-leases.C:
			c.Advance()
			continue
		case <-status.C:
			i++
			status.Reset(gap())
		}
		c.Change("nodes", apiserver.NodeName(i%nodes), func(o runtime.Object) runtime.Object {
			node := *o.(*corev1.Node)
			node.Status.Conditions = slices.Clone(node.Status.Conditions)
			node.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
			return &node
		})
	}
}

// settle waits until both processes have used little CPU time for some seconds.
func (c *fencedCluster) settle(ctx context.Context) error {
	const look = 5 * time.Second
	until := time.Now().Add(mostWaiting)
	last := time.Duration(0)
	for quiet := 0; quiet < 3; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(look):
		}
		used := time.Duration(0)
		for _, p := range []*process{c.webhook, c.controller} {
			cost, err := p.cost()
			if err != nil {
				return err
			}
			used += cost.cpu
		}
		if quiet++; (used-last).Seconds()/look.Seconds() > 0.1 {
			quiet = 0
		}
		last = used
		if time.Now().After(until) {
			return nil // the steady state shows it
		}
	}
	return nil
}

func (c *fencedCluster) steady(ctx context.Context, r *fencingResult) error {
	calls := c.Calls()
	var before [2]processCost
	for i, p := range []*process{c.webhook, c.controller} {
		var err error
		if before[i], err = p.cost(); err != nil {
			return err
		}
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(steadyTime):
	}
	r.steadyCalls = since(calls, c.Calls())
	for i, p := range []*process{c.webhook, c.controller} {
		after, err := p.cost()
		if err != nil {
			return err
		}
		after.cpu -= before[i].cpu
		*[]*processCost{&r.webhook, &r.ctrl}[i] = after
	}
	return nil
}

func since(before, after map[apiserver.Call]int) map[apiserver.Call]int {
	calls := maps.Clone(after)
	for call, n := range before {
		if calls[call] -= n; calls[call] == 0 {
			delete(calls, call)
		}
	}
	return calls
}

var errNotFenced = errors.New("not fenced in time")

// lose makes nodes lost and tainted, and waits until all are fenced.
func (c *fencedCluster) lose(ctx context.Context, names []string) (time.Duration, error) {
	began := time.Now()
	for _, name := range names {
		c.Change("nodes", name, func(o runtime.Object) runtime.Object {
			node := o.(*corev1.Node).DeepCopy()
			node.Status.Conditions[0].Status = corev1.ConditionUnknown
			node.Status.Conditions[0].LastTransitionTime = metav1.Now()
			node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: fence.OutOfServiceTaint, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute})
			return node
		})
	}
	waiting, cancel := context.WithTimeout(ctx, mostWaiting)
	defer cancel()
	for {
		changed := c.Changed()
		phases := map[string]int{}
		c.Each("nodefences.fairlead.io", func(o runtime.Object) {
			if u := o.(*unstructured.Unstructured); slices.Contains(names, u.GetName()) {
				phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
				reason, _, _ := unstructured.NestedString(u.Object, "status", "reason")
				phases[phase+" "+reason]++
			}
		})
		if phases["Fenced Fenced"] == len(names) {
			return time.Since(began), nil
		}
		select {
		case <-changed:
		case <-waiting.Done():
			return 0, fmt.Errorf("%w (%s): %v", errNotFenced, mostWaiting, phases)
		}
	}
}

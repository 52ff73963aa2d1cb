package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/testkit/apiserver"
)

const (
	fencedVolumes = 20 // of each node
	mostHolders   = 1000
	// heartbeat is how often a kubelet writes its node's status when nothing changes (nodeStatusReportFrequency).
	heartbeat = 5 * time.Minute
	// lease is how often a kubelet renews its lease.
	lease       = 10 * time.Second
	steadyTime  = 30 * time.Second
	mostWaiting = 2 * time.Minute
)

// calls are requests by kind.
type calls map[apiserver.Call]int

// fencingResult has the measurements at one size, and the reasons of those that failed.
type fencingResult struct {
	nodes, holders         int
	webhook, controller    processCost
	steady, incident, rack calls
	incidentTime, rackTime time.Duration
	rackNodes              int
	median, worst          time.Duration
}

// runFencing measures fencing's cost with all sizes, at which some nodes are lost at once, against a stand-in of the API server: there are no pods of
// workloads, no admission, and NetworkFences are confirmed at once.
func runFencing(ctx context.Context, out io.Writer, binary string, sizes []int, lost int, args []string) error {
	var results []fencingResult
	for _, nodes := range sizes {
		fmt.Fprintf(out, "%d nodes: starting\n", nodes)
		r, failed, err := fencingAt(ctx, binary, nodes, lost, args)
		if err != nil {
			return fmt.Errorf("at %d nodes: %w", nodes, err)
		}
		results = append(results, r)
		for _, err := range failed {
			fmt.Fprintf(out, "%d nodes: %v\n", nodes, err)
		}
	}
	if err := writeTable(out, sizes, fencingRows(results)); err != nil {
		return err
	}
	return results[len(results)-1].writeCalls(out)
}

func fencingAt(ctx context.Context, binary string, nodes, lost int, args []string) (r fencingResult, failed []error, err error) {
	scheme, err := reads.NewScheme()
	if err != nil {
		return r, nil, err
	}
	r.nodes, r.holders, r.rackNodes = nodes, min(mostHolders, nodes), min(lost, nodes/5)
	api, err := apiserver.New(scheme, apiserver.Size{Nodes: nodes, VolumesEach: fencedVolumes, Holders: r.holders})
	if err != nil {
		return r, nil, err
	}
	c := &fencedCluster{Server: api}
	stop, err := c.start(ctx, binary, args)
	defer func() { err = errors.Join(err, stop()) }()
	if err != nil {
		return r, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go c.heartbeats(ctx, nodes)
	if err := errors.Join(c.settle(ctx), c.steady(ctx, &r)); err != nil {
		return r, nil, err
	}
	if r.median, r.worst, err = c.judge(ctx); err != nil {
		failed = append(failed, fmt.Errorf("attachments: %w", err))
	}
	if r.incidentTime, r.incident, err = c.lose(ctx, 1, 1); err != nil {
		failed = append(failed, fmt.Errorf("one node lost: %w", err))
	}
	if r.rackTime, r.rack, err = c.lose(ctx, 2, r.rackNodes); err != nil {
		failed = append(failed, fmt.Errorf("a rack lost: %w", err))
	}
	return r, failed, nil
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

// settle waits until both processes have used little CPU time for 15 seconds, or for the longest time; the steady state
// shows the rest.
func (c *fencedCluster) settle(ctx context.Context) error {
	const look = 5 * time.Second
	last, quiet := time.Duration(0), 0
	for until := time.Now().Add(mostWaiting); quiet < 3 && time.Now().Before(until); {
		if err := sleep(ctx, look); err != nil {
			return err
		}
		webhook, controller, err := c.costs()
		if err != nil {
			return err
		}
		used := webhook.cpu + controller.cpu
		if quiet++; used-last > look/10 {
			quiet = 0
		}
		last = used
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

func (c *fencedCluster) steady(ctx context.Context, r *fencingResult) error {
	before := c.Calls()
	webhook, controller, err := c.costs()
	if err != nil {
		return err
	}
	if err := sleep(ctx, steadyTime); err != nil {
		return err
	}
	r.steady = since(before, c.Calls())
	r.webhook, r.controller, err = c.costs()
	r.webhook.cpu -= webhook.cpu
	r.controller.cpu -= controller.cpu
	return err
}

func since(before, after calls) calls {
	after = maps.Clone(after)
	for call, n := range before {
		if after[call] -= n; after[call] == 0 {
			delete(after, call)
		}
	}
	return after
}

var errNotFenced = errors.New("not fenced in time")

// pause keeps this program, which looks at all records after a change, from taking the CPU that Fairlead needs.
const pause = 5 * time.Millisecond

// lose makes nodes lost and tainted, and waits until all are fenced.
func (c *fencedCluster) lose(ctx context.Context, from, many int) (time.Duration, calls, error) {
	began, before := time.Now(), c.Calls()
	lost := map[string]bool{}
	for i := range many {
		name := apiserver.NodeName(from + i)
		lost[name] = true
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
			u := o.(*unstructured.Unstructured)
			if name, _, _ := unstructured.NestedString(u.Object, "metadata", "labels", fence.NodeLabel); lost[name] {
				phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
				reason, _, _ := unstructured.NestedString(u.Object, "status", "reason")
				phases[phase+" "+reason]++
			}
		})
		if phases["Fenced Fenced"] == many {
			return time.Since(began), since(before, c.Calls()), nil
		}
		select {
		case <-changed:
			time.Sleep(pause)
		case <-waiting.Done():
			return 0, since(before, c.Calls()), fmt.Errorf("%w (%s): %v", errNotFenced, mostWaiting, phases)
		}
	}
}

// fencingRows has DESIGN's targets, which hold at any size.
func fencingRows(results []fencingResult) []row {
	t := &rowsOf[fencingResult]{results: results}
	for _, p := range []struct {
		name       string
		mostMemory float64 // MiB
		of         func(fencingResult) processCost
	}{{"webhook", 256, func(r fencingResult) processCost { return r.webhook }}, {"controller", 512, func(r fencingResult) processCost { return r.controller }}} {
		t.addTarget(p.name+": memory", "%.1f MiB", p.mostMemory, func(r fencingResult) float64 { return p.of(r).memory })
		t.add("  of that, the program's file", "%.1f MiB", func(r fencingResult) float64 { return p.of(r).shared })
		t.add("  most since the start", "%.1f MiB", func(r fencingResult) float64 { return p.of(r).peak })
		t.addTarget(p.name+": CPU", "%.3f cores", 0.05, func(r fencingResult) float64 { return p.of(r).cpu.Seconds() / steadyTime.Seconds() })
		t.add(p.name+": requests per minute", "%.0f", func(r fencingResult) float64 {
			return float64(r.steady.of(p.name)) * float64(time.Minute/steadyTime)
		})
	}
	t.add("holders of the shared volume", "%.0f", func(r fencingResult) float64 { return float64(r.holders) })
	t.addTarget("attachment judged, median", "%.1f ms", 50, func(r fencingResult) float64 { return measured(r.median, 1000*r.median.Seconds()) })
	t.addTarget("attachment judged, longest", "%.1f ms", 50, func(r fencingResult) float64 { return measured(r.worst, 1000*r.worst.Seconds()) })
	t.add("one node lost: requests of the controller", "%.0f", func(r fencingResult) float64 {
		return measured(r.incidentTime, float64(r.incident.of("controller")))
	})
	t.add("one node lost: time until fenced", "%.2f s", func(r fencingResult) float64 { return measured(r.incidentTime, r.incidentTime.Seconds()) })
	t.add("nodes lost at once", "%.0f", func(r fencingResult) float64 { return float64(r.rackNodes) })
	t.addTarget("time until all are fenced", "%.1f s", 10, func(r fencingResult) float64 { return measured(r.rackTime, r.rackTime.Seconds()) })
	each := func(r fencingResult, requests int) float64 {
		return measured(r.rackTime, float64(requests)/float64(max(1, r.rackNodes)))
	}
	t.addTarget("requests of the controller per node", "%.1f", 12, func(r fencingResult) float64 { return each(r, r.rack.of("controller")-r.rack.events()) })
	t.add("events per node", "%.1f", func(r fencingResult) float64 { return each(r, r.rack.events()) })
	return t.rows
}

func measured(took time.Duration, value float64) float64 {
	if took == 0 {
		return none
	}
	return value
}

// of counts the requests of a part of Fairlead, except for its lease.
func (c calls) of(part string) (n int) {
	for call, many := range c {
		if call.Agent == "fairlead-"+part && call.Resource != "leases.coordination.k8s.io" {
			n += many
		}
	}
	return n
}

// events of the controller.
func (c calls) events() (n int) {
	for call, many := range c {
		if call.Agent == "fairlead-controller" && call.Resource == "events.events.k8s.io" {
			n += many
		}
	}
	return n
}

// writeCalls prints the requests of each kind.
func (r fencingResult) writeCalls(out io.Writer) error {
	fmt.Fprintf(out, "\nrequests at %d nodes, in %s of the steady state, for one lost node, and for %d lost at once:\n", r.nodes, steadyTime, r.rackNodes)
	all := maps.Clone(r.steady)
	maps.Copy(all, r.incident)
	maps.Copy(all, r.rack)
	var lines []string
	for call := range all {
		lines = append(lines, fmt.Sprintf("  %s\t%s\t%s\t%d\t%d\t%d", call.Agent, call.Resource, call.Verb, r.steady[call], r.incident[call], r.rack[call]))
	}
	slices.Sort(lines)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, strings.Join(lines, "\n"))
	return table.Flush()
}

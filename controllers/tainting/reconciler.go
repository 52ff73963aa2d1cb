package tainting

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/fence/taint"
)

// Reconciler taints lost nodes. There is one request for the whole cluster, since the decision
// depends on all nodes.
type Reconciler struct {
	Tainting taint.Rules
	// Policy of fencing, as configured.
	Policy fence.Policy
	// Facts gathers from the API server all facts that fencing a node uses, such as the addresses of
	// servers and other NetworkFences. Without Facts, only the nodes' records are used.
	Facts  func(ctx context.Context, node string) (fence.Facts, error)
	Client client.Client
	// Live reads from the API server.
	Live   client.Reader
	Events events.EventRecorder
	Clock  clock.PassiveClock
	Log    *slog.Logger

	metrics *metrics
	window  kit.Window
	// given are the incidents in which a node was tainted, by node: the record may come late.
	given    map[string]string
	reported kit.Once[reported, string]
	// looked is when the API server was last read. There is one worker.
	looked time.Time
}

const (
	// again is how soon to look again while a node is not Ready: time, the switch and leases
	// are no events.
	again = 30 * time.Second
	// pace limits the reads of the API server in clusters that change all the time.
	pace = 10 * time.Second
	// settle is when to look again after a taint.
	settle = time.Second
)

// Reconcile looks at all nodes, and taints no more than one.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	began := time.Now()
	glance, err := r.gather(ctx, r.Client)
	r.window.Looked(began)
	if err != nil {
		return ctrl.Result{}, err
	}
	verdicts := r.Tainting.Glance(glance.facts)
	if !slices.ContainsFunc(verdicts, positive) {
		r.report(glance, verdicts)
		return ctrl.Result{RequeueAfter: after(verdicts)}, nil
	}
	if wait := pace - r.Clock.Since(r.looked); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	r.looked = r.Clock.Now()
	// Facts, and the write that follows from them, are valid for MaxStaleness.
	ctx, cancel := context.WithTimeout(ctx, r.Tainting.Defaulted().MaxStaleness)
	defer cancel()
	view, judged, err := r.look(ctx)
	if err != nil {
		r.failed(glance, verdicts, positive, taint.ReasonCheckFailed, err)
		return ctrl.Result{}, err
	}
	verdicts = judged
	r.report(view, verdicts)
	for _, v := range verdicts {
		if v.Action == taint.Now {
			result, err := r.taint(ctx, view, v) // one node at each look
			if err != nil {
				r.failed(view, verdicts, func(o taint.Verdict) bool { return o.Node == v.Node }, fence.ReasonWriteFailed, err)
			}
			return result, err
		}
	}
	return ctrl.Result{RequeueAfter: after(verdicts)}, nil
}

func positive(v taint.Verdict) bool { return v.Action != taint.None }

// after is when to look again without an event; 0 is never, since all nodes are Ready.
func after(verdicts []taint.Verdict) time.Duration {
	if len(verdicts) == 0 {
		return 0
	}
	earliest := again
	for _, v := range verdicts {
		earliest = kit.Earliest(earliest, v.After)
	}
	return earliest
}

// look decides on live reads.
func (r *Reconciler) look(ctx context.Context) (*view, []taint.Verdict, error) {
	read := r.Clock.Now()
	live, err := r.gather(ctx, r.Live)
	if err != nil {
		return nil, nil, err
	}
	if err := r.addLive(ctx, live); err != nil {
		return nil, nil, err
	}
	live.facts.Read = read
	verdicts, err := r.decide(ctx, live)
	return live, verdicts, err
}

// decide checks for each node to be tainted whether it could be fenced. A node that could not makes
// room for the next.
func (r *Reconciler) decide(ctx context.Context, v *view) ([]taint.Verdict, error) {
	asked := map[string]bool{}
	for {
		v.facts.Now = r.Clock.Now()
		verdicts := r.Tainting.Judge(v.facts)
		i := slices.IndexFunc(verdicts, func(v taint.Verdict) bool { return positive(v) && !asked[v.Node] })
		if i < 0 || r.Facts == nil {
			return verdicts, nil
		}
		name := verdicts[i].Node
		facts, err := r.Facts(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("looking whether node %s could be fenced: %w", name, err)
		}
		asked[name] = true
		n := slices.IndexFunc(v.facts.Nodes, func(n taint.Candidate) bool { return n.Node.Name == name })
		v.facts.Nodes[n].Refused = fence.Unfenceable(facts)
	}
}

// taint writes the taint of one node, if the node is as it was read.
func (r *Reconciler) taint(ctx context.Context, view *view, v taint.Verdict) (ctrl.Result, error) {
	before := view.nodes[v.Node]
	node, now := before.DeepCopy(), metav1.NewTime(r.Clock.Now())
	node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{
		Key: fence.OutOfServiceTaint, Value: fence.OwnTaintValue, Effect: corev1.TaintEffectNoExecute, TimeAdded: &now,
	})
	err := r.Client.Patch(ctx, node, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	switch {
	case err == nil:
		r.given[v.Node] = incident(view, v.Node, v.Since)
		r.metrics.taints.WithLabelValues(resultTainted).Inc()
		r.Log.Warn("tainted a lost node", "node", v.Node, "incident", incident(view, v.Node, v.Since), "lost", v.Since, "taint", fence.OutOfServiceTaint, "why", v.Message)
		r.event(view, v, corev1.EventTypeWarning, "OutOfService", "Taint", "tainted automatically: "+v.Message)
		r.looked = time.Time{}
		return ctrl.Result{RequeueAfter: settle}, nil
	case kit.IsStale(err):
		r.metrics.taints.WithLabelValues(resultConflict).Inc()
		r.Log.Info("a lost node has changed: its taint is decided again", "node", v.Node)
		return ctrl.Result{RequeueAfter: pace}, nil
	}
	return ctrl.Result{}, fmt.Errorf("tainting node %s: %w", v.Node, err)
}

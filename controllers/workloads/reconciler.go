package workloads

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

// Reconciler restarts workloads. A request names a node.
type Reconciler struct {
	Names longhorn.Names
	// DeadMounts restarts workloads whose mount has died.
	DeadMounts bool
	// OnRequest restarts workloads for whose volume the storage system requests a remount.
	OnRequest bool
	Client    client.Client
	// Live reads from the API server.
	Live   client.Reader
	Cached *reads.Reader
	// MaxPercent of the workloads may be restarted in a minute.
	MaxPercent int
	Events     events.EventRecorder
	Clock      clock.PassiveClock
	Log        *slog.Logger

	// nodes has the state of each node; waiting are nodes without a client. A node has one worker
	// at a time.
	mu      sync.Mutex
	nodes   map[string]*node
	waiting map[string]waiting
	// missed is the first place of mounts that could not be recorded.
	missed rwx.Mounting
	brake  brake
	turns  turns
	// paused is whether the last policy was paused.
	paused  atomic.Bool
	metrics *metrics
	// recording serializes writes of dead mounts; recorded has the last ones of a node, with their reasons.
	recording sync.Mutex
	recorded  map[string]map[types.UID]string
	// requested are nodes with a volume whose remount is requested.
	requested sync.Map
}

// node is the state of a node, for one network namespace of its client.
type node struct {
	client    string
	namespace rwx.NetworkNamespace
	policy    string
	// listed: the pods were listed. They are listed again at listDue, if that is not zero.
	listed  bool
	listDue time.Time
	// waiting are pods of the list that wait for their turn.
	waiting []corev1.Pod
	// inFlight pods were terminating when listed, or were evicted since.
	inFlight int
	// left are pods with a dead mount that are not restarted.
	left map[types.UID]v1alpha1.DeadMount
	// reported are the reasons of verdicts that events were written for, by the pod's UID.
	reported kit.Once[types.UID, string]
	// settled: nothing is due until something changes.
	settled bool
}

// leftDead is how soon to check a node again with a dead mount whose pod may not be restarted:
// the pod may be changed.
const leftDead = time.Minute

// recordRetry is how soon to record dead mounts again after an error.
const recordRetry = 30 * time.Second

// Reconcile looks at one node.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	policy, err := r.policy(ctx)
	if errors.Is(err, reads.ErrNotRecorded) || apierrors.IsNotFound(err) {
		return ctrl.Result{}, nil // the record is an event
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if r.paused.Swap(policy.Paused) && !policy.Paused {
		r.brake.release()
	}
	r.metrics.pausedNow(policy.Paused)
	clients, err := r.Cached.ClientsOn(ctx, request.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if len(clients) == 0 {
		r.forget(request.Name)
		return ctrl.Result{}, r.recordGone(ctx, request.Name)
	}
	ready, reason := rwx.MountingClient(clients, policy.Applied)
	if ready == nil {
		// A restart would find no client to mount; its readiness is an event.
		return ctrl.Result{RequeueAfter: r.wait(request.Name, clients, reason, policy)}, nil
	}
	r.waited(request.Name)
	boot, err := r.Cached.BootID(ctx, request.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	namespace := ready.Known(ready.Sandbox.Namespace(ready.Recorded).In(boot, ready.Recorded))
	if namespace, err = r.remember(ctx, *ready, namespace, policy); err != nil {
		return ctrl.Result{}, err
	}
	n := r.node(request.Name, *ready, namespace, policy)
	if n.settled {
		return ctrl.Result{}, nil
	}
	after, err := r.look(ctx, request.Name, n, policy)
	if err != nil {
		n.listed = false
		return ctrl.Result{}, err
	}
	n.settled = after == 0
	return ctrl.Result{RequeueAfter: after}, nil
}

// look at the pods that wait for their turn, or at all where a list is due.
// It returns when to look again.
func (r *Reconciler) look(ctx context.Context, name string, n *node, policy rwx.Restarts) (time.Duration, error) {
	pods, fresh := n.waiting, !n.listed || !n.listDue.IsZero() && !policy.Now.Before(n.listDue)
	if fresh {
		var err error
		if pods, err = reads.PodsOn(ctx, r.Live, name); err != nil {
			return 0, err
		}
		n.listed, n.listDue, n.inFlight = true, time.Time{}, countInFlight(pods, policy.Now)
	}
	nextList, nextTurn, err := r.restart(ctx, name, n, policy, pods, fresh)
	if due := policy.Now.Add(nextList); nextList > 0 && (n.listDue.IsZero() || due.Before(n.listDue)) {
		n.listDue = due
	}
	if !n.listDue.IsZero() {
		nextTurn = kit.Earliest(nextTurn, n.listDue.Sub(policy.Now))
	}
	return nextTurn, err
}

// node returns the state of a node with the present namespace of its client.
func (r *Reconciler) node(name string, c rwx.Client, namespace rwx.NetworkNamespace, policy rwx.Restarts) *node {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.nodes[name]
	if n == nil || n.client != c.UID || !n.namespace.Since.Equal(namespace.Since) {
		n = &node{client: c.UID, namespace: namespace}
		r.nodes[name] = n
	}
	n.namespace = namespace
	_, requested := r.requested.LoadAndDelete(name)
	if key := policyKey(policy); n.policy != key || requested {
		n.policy, n.settled, n.listed = key, false, false
	}
	return n
}

func (r *Reconciler) forget(name string) {
	r.waited(name)
	r.mu.Lock()
	delete(r.nodes, name)
	r.mu.Unlock()
	r.requested.Delete(name)
	r.metrics.left(name, nil)
}

// restart evicts the pods with dead mounts whose turn it is. nextList is when to list the pods of
// the node again; nextTurn is when a listed pod may be evicted. An error of one pod stops no other.
func (r *Reconciler) restart(ctx context.Context, name string, n *node, policy rwx.Restarts, pods []corev1.Pod, fresh bool) (nextList, nextTurn time.Duration, _ error) {
	var problems []error
	var waiting []corev1.Pod
	if fresh {
		n.left = map[types.UID]v1alpha1.DeadMount{}
	}
	for i := range pods {
		pod := &pods[i]
		w, err := r.Cached.Workload(ctx, pod, policy.Applied)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		v := rwx.Judge(w, n.namespace, policy)
		r.note(pod, v)
		nextList = kit.Earliest(nextList, v.After)
		switch {
		case v.State == rwx.Unsure:
			r.report(n, pod, v)
		case v.State != rwx.Dead || v.After > 0:
		case !v.Restart:
			r.leave(n, pod, w, v, policy)
			nextList = kit.Earliest(nextList, leftDead)
		case n.inFlight >= perNode:
			nextList = kit.Earliest(nextList, pace)
		default:
			if wait := r.turns.take(types.UID(w.Owner.UID), policy.Now); wait > 0 {
				pod.ManagedFields = nil // half of the size, and not read
				waiting = append(waiting, *pod)
				nextTurn = kit.Earliest(nextTurn, wait)
				continue
			}
			evicted, after, err := r.evict(ctx, n, pod, w, v, policy, fresh)
			if err != nil {
				problems = append(problems, err)
			}
			if evicted {
				n.inFlight++
			}
			nextList = kit.Earliest(nextList, after)
		}
	}
	n.waiting = waiting
	r.metrics.left(name, n.left)
	if len(problems) > 0 {
		return nextList, nextTurn, errors.Join(problems...) // what was not judged is not mended
	}
	if err := r.record(ctx, name, n.left); err != nil {
		r.Log.Warn("could not record dead mounts", "node", name, "error", err)
		nextList = kit.Earliest(nextList, recordRetry) // restarts go on
	}
	return nextList, nextTurn, errors.Join(problems...)
}

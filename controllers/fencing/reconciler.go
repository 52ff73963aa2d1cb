package fencing

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
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
)

// Reconciler keeps the records of healthy nodes, and passes all others on to runIncidents. A request names a node.
type Reconciler struct {
	Client client.Client
	Reader *fencingreads.FenceReader
	// Held tells which nodes get or lose an attachment, and which are in an incident.
	Held *fencingreads.Holdings
	// API reads the objects that are written, from the API server.
	API client.Reader
	// Ask asks the storage before a node is fenced; nil asks nothing.
	Ask    fencingreads.AskStorage
	Events events.EventRecorder
	Clock  clock.PassiveClock
	Log    *slog.Logger

	// incidents are the names of nodes for runIncidents.
	incidents workqueue.TypedRateLimitingInterface[string]
	asked     *asked
	metrics   *metrics
	// started is when this controller made its first look.
	started atomic.Pointer[time.Time]
	// seen is the last state of each Node, by name.
	seen sync.Map
	// kept are the deleted records, by UID, of which an event says why they remain.
	kept kit.Once[types.UID, bool]
}

const (
	// refresh is how often a healthy node is checked without an event. Its addresses are
	// recorded as seen just as often.
	refresh = 5 * time.Minute
	// lookForPods is how often a fenced node with pods is checked: pods are not watched.
	lookForPods = 5 * time.Second
	// unwatched is how often a node in an incident is checked in any case.
	unwatched = time.Minute
	// lookForCSIAddons is how often missing kinds of csi-addons are looked for.
	lookForCSIAddons = 30 * time.Second
	// behind is how soon to look again after a write that met a stale cache, or that others must be seen with.
	behind = 200 * time.Millisecond
)

// Reconcile looks at all machines that have or had one node name.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	result, known, err := r.routine(ctx, request.Name)
	switch {
	case errors.Is(err, errBehind), errors.Is(err, fencingreads.ErrNotSynced):
		return ctrl.Result{RequeueAfter: behind}, nil
	case err == nil && !known:
		r.incidents.Add(request.Name)
		return ctrl.Result{RequeueAfter: refresh}, nil
	}
	return result, err
}

// routine decides on the cache, as long as there is nothing to do or only the ledger of a healthy node to record. Else known is
// false.
func (r *Reconciler) routine(ctx context.Context, node string) (result ctrl.Result, known bool, err error) {
	if r.Held.InIncident(node) {
		return ctrl.Result{}, false, nil
	}
	views, err := r.views(ctx, r.Reader, node)
	if err != nil || len(views) == 0 {
		return ctrl.Result{}, true, err
	}
	if len(views) > 1 || !views[0].Quiet() {
		return ctrl.Result{}, false, nil
	}
	d := decide(views[0])
	r.requestReports(ctx, d.FenceView)
	after := d.requeueAfter()
	if !d.isSettled() { // if the cache is stale, an event follows
		if known, err := r.isKnown(ctx, d); err != nil || !known {
			return ctrl.Result{}, false, err
		}
		if err := r.write(ctx, d); isOvertaken(err) || apierrors.IsNotFound(err) {
			after = behind // the cache is behind
		} else if err != nil {
			return ctrl.Result{}, true, err
		}
	}
	r.reportKept(d)
	return ctrl.Result{RequeueAfter: after}, true, nil
}

// isKnown reports whether a decision on the cache may be recorded: only the ledger of a healthy node changes. A stale cache may
// hide that the node is lost, and that an attachment is gone for that reason. So the Node is compared with a live read before a
// volume is forgotten.
func (r *Reconciler) isKnown(ctx context.Context, d decision) (bool, error) {
	if d.Status.Phase != v1alpha1.NodeHealthy || d.Forget || !d.hasNoActions() || d.needsMark() || d.Record != nil && d.Record.DeletionTimestamp != nil {
		return false, nil
	}
	if !fence.Forgets(d.Facts.Status, d.Status) {
		return true, nil
	}
	if d.Node == nil {
		return false, nil
	}
	var now corev1.Node
	if err := r.API.Get(ctx, client.ObjectKeyFromObject(d.Node), &now); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return !fencingreads.FenceNodeChanged(d.Node, &now), nil
}

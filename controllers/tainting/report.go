package tainting

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/fence/taint"
)

// reported is one reason of a node, which is reported once in an incident.
type reported struct{ node, reason string }

// quiet are reasons without an event: they are configured, end by themselves, or are in the node's
// record.
var quiet = []string{
	taint.ReasonTaintingOff, taint.ReasonControlPlane, taint.ReasonNotSelected, taint.ReasonOptedOut,
	taint.ReasonAlreadyTainted, taint.ReasonLeaving, taint.ReasonKubeletAlive, taint.ReasonNotYet,
	taint.ReasonUnderWay, fence.ReasonNothingHeld, fence.ReasonSwitchedOff,
}

// report emits events for verdicts, once for each reason in an incident.
func (r *Reconciler) report(view *view, verdicts []taint.Verdict) {
	r.metrics.judged(verdicts)
	lost := map[string]bool{}
	for _, v := range verdicts {
		lost[v.Node] = true
		r.Log.Debug("judged a lost node", "node", v.Node, "action", v.Action, "reason", v.Reason, "message", v.Message)
		if v.Action == taint.Now || slices.Contains(quiet, v.Reason) || !r.reported.IsNew(reported{v.Node, v.Reason}, incident(view, v.Node, v.Since)) {
			continue
		}
		if v.Action == taint.Would {
			r.Log.Info("would taint a lost node", "node", v.Node, "incident", incident(view, v.Node, v.Since), "lost", v.Since, "why", v.Message)
			r.event(view, v, corev1.EventTypeNormal, "WouldTaint", "DryRun", "automatic tainting is in a dry run, and would taint it now: "+v.Message)
			continue
		}
		r.Log.Warn("a lost node is not tainted", "node", v.Node, "incident", incident(view, v.Node, v.Since), "lost", v.Since, "reason", v.Reason, "why", v.Message)
		r.event(view, v, corev1.EventTypeWarning, "NotTainted", "Judge", "not tainted automatically ("+v.Reason+"): "+v.Message)
	}
	r.reported.ForgetAll(func(of reported) bool { return !lost[of.node] })
	// While the node exists, the record of the taint may still come.
	maps.DeleteFunc(r.given, func(node, _ string) bool { return view.nodes[node] == nil })
}

// failed reports nodes that are not tainted because of an error. A right may be missing: then no
// node is ever tainted.
func (r *Reconciler) failed(view *view, verdicts []taint.Verdict, which func(taint.Verdict) bool, reason string, problem error) {
	if errors.Is(problem, context.Canceled) {
		return // this process ends
	}
	r.metrics.taints.WithLabelValues(resultFailed).Inc()
	message := problem.Error() + " (it is tried again)"
	if apierrors.IsForbidden(problem) {
		message += ": is the component fencing-tainting installed?"
	}
	for i := range verdicts {
		if which(verdicts[i]) {
			verdicts[i].Action, verdicts[i].Refusal = taint.None, fence.Refusal{Reason: reason, Message: kit.Clip(message, maxNote)}
		}
	}
	r.report(view, verdicts)
}

// maxNote leaves room in an event's note for the text before the message.
const maxNote = 900

// incident names a node's loss: by its record, or by its time while there is none.
func incident(view *view, node string, since time.Time) string {
	if record := view.records[node]; record != nil && record.Spec.LostSince != nil {
		return record.Name + " " + record.Spec.LostSince.UTC().Format(time.RFC3339)
	}
	return since.UTC().Format(time.RFC3339)
}

// event emits an event for the node and for its record.
func (r *Reconciler) event(view *view, v taint.Verdict, kind, reason, action, note string) {
	var record runtime.Object
	if found := view.records[v.Node]; found != nil {
		record = found
		r.Events.Eventf(record, view.nodes[v.Node], kind, reason, action, "%s", note)
	}
	r.Events.Eventf(view.nodes[v.Node], record, kind, reason, action, "%s", note)
}

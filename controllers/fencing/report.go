package fencing

import (
	"context"
	"log/slog"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// log has the fields of one node's incident.
func (r *Reconciler) log(d decision) *slog.Logger {
	return r.Log.With("node", d.Facts.Node.Name, "nodeFence", d.Facts.Record, "phase", d.Status.Phase)
}

// report emits events for the record and the node, once for each phase and reason. That a node
// is healthy is reported only after an incident.
func (r *Reconciler) report(record *v1alpha1.NodeFence, d decision) {
	was, is := d.was(), d.Status
	r.metrics.recorded(d)
	if was.Phase == is.Phase && was.Reason == is.Reason || was.Phase == "" && is.Phase == v1alpha1.NodeHealthy && !d.Warning {
		return
	}
	kind, level := corev1.EventTypeNormal, slog.LevelInfo
	if d.Warning {
		kind, level = corev1.EventTypeWarning, slog.LevelWarn
	}
	r.log(d).Log(context.Background(), level, "the fence of a node changed", "was", was.Phase, "reason", is.Reason, "message", is.Message, "volumes", is.VolumeCount)
	message := "the node is healthy"
	if link := fence.Link(is.Reason); is.Message != "" {
		message = kit.Clip(strings.TrimSuffix(is.Message, link), kit.MaxNote-len(link)) + link
	}
	if d.Node == nil { // a nil pointer in an interface is not nil
		r.Events.Eventf(record, nil, kind, is.Reason, string(is.Phase), "%s", message)
		return
	}
	r.Events.Eventf(record, d.Node, kind, is.Reason, string(is.Phase), "%s", message)
	r.Events.Eventf(d.Node, record, kind, is.Reason, string(is.Phase), "%s", message)
}

// reportForgotten reports that a node was readmitted, which ends the record of its earlier boot.
func (r *Reconciler) reportForgotten(d decision) {
	r.metrics.forgotten(d)
	if d.Node != nil && d.was().Phase == v1alpha1.NodeUnfencing {
		r.Events.Eventf(d.Node, d.Record, corev1.EventTypeNormal, fence.ReasonReady, string(v1alpha1.NodeHealthy), "the node is healthy: its earlier boot is over, and no longer fenced")
	}
}

// reportAct reports that the request of a person was carried out, or is void.
func (r *Reconciler) reportAct(record *v1alpha1.NodeFence, d decision) {
	switch {
	case d.Void != nil:
		r.log(d).Warn("a request of a user is void", "gate", d.Void.Gate, "by", d.Void.By, "why", d.Void.Reason)
		r.Events.Eventf(record, nil, corev1.EventTypeWarning, "Void", "Override", "the node has changed since %s asked to override gate %s, so nothing was done: look at it again, and ask again if it still holds", d.Void.By, d.Void.Gate)
	case len(d.Spec.Acts) > 0 && d.Consumed:
		act := d.Spec.Acts[len(d.Spec.Acts)-1]
		r.log(d).Warn("a gate was overridden", "gate", act.Gate, "by", act.By, "why", act.Reason, "volumes", act.Volumes)
		r.Events.Eventf(record, nil, corev1.EventTypeNormal, fence.ReasonOverridden, "Override", "%s overrode gate %s (%d volumes): %s", act.By, act.Gate, act.Volumes, act.Reason)
	}
}

// reportKept reports once that a deleted record remains for now.
func (r *Reconciler) reportKept(d decision) {
	if d.Record == nil {
		return
	}
	if d.Record.DeletionTimestamp == nil || !fence.Keep(d.Spec) {
		r.kept.Forget(d.Record.UID)
		return
	}
	if !r.kept.IsNew(d.Record.UID, true) {
		return
	}
	r.log(d).Warn("a deleted record is still needed: it is removed when its node is healthy again")
	r.Events.Eventf(d.Record, nil, corev1.EventTypeWarning, "Kept", string(d.Status.Phase),
		"the record was deleted, but is the only memory of what the node holds and of what is fenced: it is removed when the node is healthy again")
}

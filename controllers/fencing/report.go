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
	return r.Log.With("node", d.Facts.Node.Name, "nodeFence", d.Facts.Record, "incident", d.Status.Incident, "phase", d.Status.Phase)
}

// report emits events for the record and the node, once for each phase and reason. That a node
// is healthy is reported only after an incident.
func (r *Reconciler) report(record *v1alpha1.NodeFence, d decision) {
	was, is := d.Facts.Status, d.Status
	r.metrics.recorded(d)
	if was.Phase == is.Phase && was.Reason == is.Reason || was.Phase == "" && is.Phase == v1alpha1.NodeHealthy && !d.Warning {
		return
	}
	kind, level := corev1.EventTypeNormal, slog.LevelInfo
	if d.Warning {
		kind, level = corev1.EventTypeWarning, slog.LevelWarn
	}
	r.log(d).Log(context.Background(), level, "the fence of a node changed", "was", was.Phase, "reason", is.Reason, "message", is.Message, "volumes", len(is.Volumes))
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

// reportKept reports once that a deleted record remains for now.
func (r *Reconciler) reportKept(d decision) {
	if d.Record == nil {
		return
	}
	if d.Record.DeletionTimestamp == nil || !fence.Keep(d.Status) {
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

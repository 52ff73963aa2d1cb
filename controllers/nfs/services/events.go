package services

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/nfs"
)

// reportEvents emits events, logs and metrics of what the pass found and did.
func (p *pass) reportEvents(recorded, now []metav1.Condition) {
	for _, c := range p.changes {
		p.Log.Info("the health of a backend changed", "service", p.key.String(), "backend", c.Backend, "from", c.From, "to", c.To, "error", c.Error)
		switch {
		case c.To == nfs.Down:
			p.event(corev1.EventTypeWarning, "BackendDown", "Probe", fmt.Sprintf("backend %s is taken out: %s", c.Backend, c.Error))
		case c.To == nfs.Healthy && c.From != nfs.Unknown:
			p.event(corev1.EventTypeNormal, "BackendHealthy", "Probe", fmt.Sprintf("backend %s answers again", c.Backend))
		}
	}
	p.changes = nil
	for _, m := range p.moves {
		p.metrics.moves.WithLabelValues(p.key.Namespace, p.key.Name, m.reason).Inc()
		p.Log.Info("moved", "service", p.key.String(), "what", m.what, "reason", m.reason, "from", m.from, "to", m.to, "nodes", m.nodes)
		if m.nodes > 0 {
			p.event(corev1.EventTypeNormal, "Moved", "Publish", m.String())
		}
	}
	for _, kind := range []string{v1alpha1.NFSReady, v1alpha1.NFSProberSuspected} {
		c, before := meta.FindStatusCondition(now, kind), ptr.Deref(meta.FindStatusCondition(recorded, kind), metav1.Condition{})
		switch {
		case c == nil:
		case before.Reason == c.Reason && before.Message == c.Message:
		case warns(c.Reason):
			p.event(corev1.EventTypeWarning, c.Reason, "Reconcile", c.Message)
		case warns(before.Reason):
			p.event(corev1.EventTypeNormal, c.Reason, "Reconcile", "solved: "+before.Reason)
		}
	}
}

func (p *pass) event(kind, reason, action, note string) {
	p.Events.Eventf(p.service, nil, kind, reason, action, "%s", kit.Note(note))
}

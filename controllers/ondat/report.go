package ondat

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
)

// ignore reports once why a volume is not published, and withdraws its address: no address
// is better than a wrong one. The controller decides again when the volume, its PVC or its
// Service changes, and when the cache's entry expires.
func (r *Reconciler) ignore(ctx context.Context, f ondat.Finding, reason ondat.Reason, message string) error {
	// The writer has withdrawn what there was, and the Service may still be right.
	if reason != ondat.AddressUnavailable && reason != ondat.ForeignService && reason != ondat.ClaimOfTwoVolumes {
		if err := r.withdraw(ctx, f); err != nil {
			return err
		}
	}
	claim, err := readClaim(ctx, r.Client, f)
	if err != nil {
		return err
	}
	r.report(f, claim, outcome{ignored, reason, message})
	return nil
}

// report records an outcome. It logs a new outcome, and emits an event on the PVC.
func (r *Reconciler) report(f ondat.Finding, claim *corev1.PersistentVolumeClaim, o outcome) {
	if !r.table.settle(f, r.Clock.Now(), o) {
		return
	}
	r.Log.Warn("a shared volume is not published", "volume", f.ID, "reason", o.reason, "why", o.message)
	r.event(claim, corev1.EventTypeWarning, string(o.reason), "Publish", "%s", o.message)
}

// event on a PVC, if there is one. The API server takes notes of at most 1 KiB.
func (r *Reconciler) event(claim *corev1.PersistentVolumeClaim, kind, reason, action, format string, args ...any) {
	if claim == nil {
		return
	}
	r.Events.Eventf(claim, nil, kind, reason, action, "%s", kit.Note(fmt.Sprintf(format, args...)))
}

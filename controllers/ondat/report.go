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
func (r *Reconciler) ignore(ctx context.Context, f ondat.Finding, why ondat.Refusal) error {
	// The writer has withdrawn what there was, and the Service may still be right.
	if why.Reason != ondat.AddressUnavailable && why.Reason != ondat.ForeignService && why.Reason != ondat.ClaimOfTwoVolumes {
		if err := r.withdraw(ctx, f); err != nil {
			return err
		}
	}
	claim, err := readClaim(ctx, r.Client, f)
	if err != nil {
		return err
	}
	r.report(f, claim, why)
	return nil
}

// report records why a volume is not published. It logs a new reason, and emits an event on the PVC.
func (r *Reconciler) report(f ondat.Finding, claim *corev1.PersistentVolumeClaim, why ondat.Refusal) {
	if !r.table.settle(f, r.Clock.Now(), outcome{ignored, why}) {
		return
	}
	r.Log.Warn("a shared volume is not published", "volume", f.ID, "reason", why.Reason, "why", why.Message)
	r.event(claim, corev1.EventTypeWarning, string(why.Reason), "Publish", "%s", why.Message)
}

// event on a PVC, if there is one. The API server takes notes of at most 1 KiB.
func (r *Reconciler) event(claim *corev1.PersistentVolumeClaim, kind, reason, action, format string, args ...any) {
	if claim == nil {
		return
	}
	r.Events.Eventf(claim, nil, kind, reason, action, "%s", kit.Note(fmt.Sprintf(format, args...)))
}

package ondat

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
)

// ignore says once why a volume is not published, and withdraws what is published
// for it: no address is better than a wrong one. The volume is looked at again when
// it, its PVC or its Service changes, and when the cache's entry expires.
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
	r.say(ctx, f, claim, outcome{ignored, reason, message})
	return nil
}

// say notes an outcome, and tells people if it is news.
func (r *Reconciler) say(_ context.Context, f ondat.Finding, claim *corev1.PersistentVolumeClaim, o outcome) {
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

package ondat

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/controllers/nfs/frontend"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
	"github.com/fairlead-io/fairlead/internal/nfs/publish"
)

// phase of a volume after a round.
type phase string

const (
	pending   phase = "pending"
	published phase = "published"
	notServed phase = "not_served"
	ignored   phase = "ignored"
	// withdrawn volumes are not shared any more, or do not exist.
	withdrawn phase = "withdrawn"
)

// doneAs is the phase of a volume when nothing is left to do.
var doneAs = map[ondat.State]phase{ondat.Served: published, ondat.NotServed: notServed, ondat.Plain: withdrawn}

// outcome of a round for one volume.
type outcome struct {
	phase phase
	// Refusal is why the volume is ignored. Without a reason, its message says what failed.
	ondat.Refusal
}

func outcomeOf(f ondat.Finding, err error) outcome {
	var why ondat.Refusal
	switch {
	case err == nil:
		return outcome{phase: doneAs[f.State]}
	case errors.As(err, &why):
		return outcome{ignored, why}
	case kit.IsConflict(err), errors.Is(err, context.Canceled):
		return outcome{phase: pending} // the cache is stale: an event follows
	}
	return outcome{pending, ondat.Refusal{Message: err.Error()}}
}

// bring brings the objects of one volume in line. It reports why a volume cannot be
// published when that changes, in the log and as an event of its PVC.
func (r *Reconciler) bring(ctx context.Context, f ondat.Finding, s services) outcome {
	ctx, cancel := context.WithTimeout(ctx, volumeLimit)
	defer cancel()
	claim, err := readClaim(ctx, r.Client, f)
	switch {
	case err != nil:
	case s.unread != nil && f.Labels[ondat.LabelMountEndpoint] != "" && len(s.ofVolume[f.ID]) == 0:
		err = s.unread
	case f.State == ondat.Served:
		err = r.serve(ctx, f, claim, s)
	case f.State == ondat.Ignored:
		err = r.withdraw(ctx, f, s, f.Why)
	default:
		if err = r.withdraw(ctx, f, s, nil); err == nil && f.State == ondat.NotServed && claim == nil {
			err = r.clearLabel(ctx, f)
		}
	}
	o := outcomeOf(f, err)
	if o.Message == "" || o == r.outcomes[f.ID] {
		return o
	}
	r.Log.Warn("a shared volume is not published", "volume", f.ID, "reason", o.Reason, "why", o.Message)
	if o.Reason != "" {
		r.event(claim, corev1.EventTypeWarning, o.Reason, o.Message)
	}
	return o
}

// event on a PVC, if there is one. The API server takes notes of at most 1 KiB.
func (r *Reconciler) event(claim *corev1.PersistentVolumeClaim, kind, reason, message string) {
	if claim != nil {
		r.Events.Eventf(claim, nil, kind, reason, "Publish", "%s", kit.Note(message))
	}
}

// withdraw takes the server's address out of the slices of a volume that has no server
// now, or a doubtful one: no address is better than a wrong one. Then it returns why.
func (r *Reconciler) withdraw(ctx context.Context, f ondat.Finding, s services, why error) error {
	for i := range s.ofVolume[f.ID] {
		if empty, ok := f.Withdrawn(&s.ofVolume[f.ID][i]); ok {
			if _, err := r.sync(ctx, f, empty); err != nil {
				return err
			}
		}
	}
	return why
}

// clearLabel takes back the mount endpoint of a detached volume whose PVC is gone, as
// with reclaim policy Retain: its ClusterIP went with the PVC and may be given to
// another Service.
func (r *Reconciler) clearLabel(ctx context.Context, f ondat.Finding) error {
	if f.Labels[ondat.LabelMountEndpoint] == "" || f.AttachmentType != ondat.Detached {
		return nil
	}
	if claim, err := readClaim(ctx, r.Live, f); err != nil || claim != nil {
		return err
	}
	if err := r.API.SetMountEndpoint(ctx, f.Volume, ""); err != nil {
		return fmt.Errorf("clearing the mount endpoint of %s, whose PersistentVolumeClaim is gone: %w", f.Title(), err)
	}
	r.Log.Info("cleared the mount endpoint: the PersistentVolumeClaim is gone", "volume", f.ID, "was", f.Labels[ondat.LabelMountEndpoint])
	return nil
}

// sync writes a frontend, then deletes the Endpoints that the released manager wrote.
// Kubernetes mirrors them into a slice, which would keep the address of that time.
// They are deleted once for each volume and process: a crash may come in between.
func (r *Reconciler) sync(ctx context.Context, f ondat.Finding, want publish.Frontend) (frontend.Result, error) {
	result, err := r.Writer.Sync(ctx, want, nil)
	_, cleaned := r.cleaned.Load(f.ID)
	if err != nil || result.State != frontend.Published || result.Service == publish.Keep && cleaned {
		return result, err
	}
	//lint:ignore SA1019 the released manager writes the deprecated API
	e := &corev1.Endpoints{}
	e.Namespace, e.Name = want.Namespace, want.Name
	if err := r.Client.Delete(ctx, e); client.IgnoreNotFound(err) != nil {
		return result, fmt.Errorf("deleting Endpoints %s/%s of the released manager: %w", want.Namespace, want.Name, err)
	}
	r.cleaned.Store(f.ID, true)
	return result, nil
}

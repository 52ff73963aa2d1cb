package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// replaceService moves the Service of a detached volume to its network. A headless Service that
// stays headless is changed in place. A cluster IP can't be changed: the Service is kept in the
// record, deleted and recreated. After a crash, the next reconcile recreates it.
func (r *Reconciler) replaceService(ctx context.Context, seen rwx.Service, record rollout.Record, request rwx.Request) error {
	old, err := r.Live.ServiceObject(ctx, seen.Name)
	if err != nil {
		return err
	}
	if string(old.UID) != seen.UID || old.ResourceVersion != seen.ResourceVersion {
		return apierrors.NewConflict(corev1.Resource("services"), seen.Name, errServiceMoved)
	}
	fresh, err := kit.RenewedService(r.Names, old, record, request)
	if err != nil {
		return err
	}
	if old.Spec.ClusterIP == corev1.ClusterIPNone && fresh.Spec.ClusterIP == corev1.ClusterIPNone {
		before := old.DeepCopy()
		old.Annotations, old.Spec.Selector = fresh.Annotations, fresh.Spec.Selector
		if err := r.Client.Patch(ctx, old, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("changing Service %s: %w", seen.Name, err)
		}
		r.Log.Info("changed the network of a detached volume's Service", "service", seen.Name, "network", fresh.Annotations[rwx.NetworkAnnotation])
		return nil
	}
	uid, version := types.UID(seen.UID), seen.ResourceVersion
	unchanged := client.Preconditions{UID: &uid, ResourceVersion: &version}
	if err := kit.CanReplace(ctx, r.Client, old, fresh, unchanged); err != nil {
		return fmt.Errorf("replacing Service %s: %w", seen.Name, err)
	}
	if err := r.intend(ctx, old); err != nil {
		return err
	}
	if user, err := r.Live.UserOf(ctx, seen.Volume); err != nil {
		return err
	} else if user != "" { // it started since the decision; the kept Service is taken back by the next step
		return apierrors.NewConflict(corev1.Resource("services"), seen.Name, fmt.Errorf("%w: %s", errVolumeInUse, user))
	}
	if err := r.Client.Delete(ctx, old, unchanged); err != nil {
		return fmt.Errorf("replacing Service %s: %w", seen.Name, err)
	}
	return r.finishReplacing(ctx)
}

var (
	errServiceMoved = errors.New("the Service has changed since the decision")
	errVolumeInUse  = errors.New("its volume is used since the decision")
	errNotFinished  = errors.New("another Service is being replaced")
	errTerminating  = errors.New("the old Service still terminates")
)

// resumeReplacing completes the replacement of a Service that an earlier leader began. With a stale
// cache, the Service may exist already. While the API server refuses the Service, other work goes on.
func (r *Reconciler) resumeReplacing(ctx context.Context, record rollout.Record) (wrote bool, _ error) {
	if slices.ContainsFunc(r.refusals.held(r.Clock.Now()), func(refused rollout.Refusal) bool {
		return refused.Kind == catalog.BlockedByService && refused.Name == record.Replacing
	}) {
		return false, nil
	}
	err := r.finishReplacing(ctx)
	switch {
	case kit.IsConflict(err): // the conflicting write is an event, and so is the end of a Service that terminates
		r.Log.Info("stepped aside", "action", rollout.ReplaceServices, "error", err.Error())
		return false, nil
	case kit.IsRefused(err):
		r.refuse(catalog.BlockedByService, record.Replacing, err)
		r.wakeIn(workAfterRefusal)
		return false, nil
	case err == nil:
		r.refusals.remove(catalog.BlockedByService, record.Replacing)
	}
	return err == nil, err
}

// requestOf is the request for one volume.
func (r *Reconciler) requestOf(ctx context.Context, volume string) (rwx.Request, error) {
	if !r.VolumeNetworks {
		return rwx.Request{}, nil
	}
	return r.Live.Request(ctx, volume)
}

// intend keeps a Service in the record before its deletion. An earlier kept Service, which the
// cache may not show yet, comes first.
func (r *Reconciler) intend(ctx context.Context, old *corev1.Service) error {
	text, err := json.Marshal(kit.KeptService(old))
	if err != nil {
		return fmt.Errorf("keeping Service %s: %w", old.Name, err)
	}
	return r.writeRecord(ctx, func(status *v1alpha1.NetworkRolloutStatus) error {
		if status.Replacing != "" && status.Replacing != string(text) {
			return apierrors.NewConflict(corev1.Resource("services"), old.Name, errNotFinished)
		}
		status.Replacing = string(text)
		return nil
	})
}

// finishReplacing recreates the kept Service on its network by the present record, unless the
// Service exists again, and removes it from the record.
func (r *Reconciler) finishReplacing(ctx context.Context) error {
	return r.writeRecord(ctx, func(status *v1alpha1.NetworkRolloutStatus) error {
		if status.Replacing == "" {
			return nil
		}
		var old corev1.Service
		if err := json.Unmarshal([]byte(status.Replacing), &old); err != nil {
			return fmt.Errorf("reading status.replacing of NetworkRollout %s: %w", longhorn.Name, err)
		}
		record, err := reads.RecordOf(&v1alpha1.NetworkRollout{Status: *status})
		if err != nil && !errors.Is(err, reads.ErrNotRecorded) {
			return err
		}
		request, err := r.requestOf(ctx, old.Labels[r.Names.VolumeLabel])
		if err != nil {
			return err
		}
		fresh, err := kit.RenewedService(r.Names, &old, record, request)
		if err != nil {
			return err
		}
		switch err := r.Client.Create(ctx, fresh); {
		case err == nil:
			r.Log.Info("replaced the Service of a detached volume", "service", old.Name, "network", fresh.Annotations[rwx.NetworkAnnotation])
		case !apierrors.IsAlreadyExists(err):
			return fmt.Errorf("replacing Service %s: %w", old.Name, err)
		default: // the storage system's, or the old one that was not deleted yet
			if err := r.mustStay(ctx, old.Name); err != nil {
				return err
			}
		}
		status.Replacing = ""
		return nil
	})
}

// mustStay returns a conflict for a Service that terminates: its deletion, which is an event,
// would leave no Service.
func (r *Reconciler) mustStay(ctx context.Context, name string) error {
	service, err := r.Live.ServiceObject(ctx, name)
	if apierrors.IsNotFound(err) || err == nil && service.DeletionTimestamp != nil {
		return apierrors.NewConflict(corev1.Resource("services"), name, errTerminating)
	}
	return err
}

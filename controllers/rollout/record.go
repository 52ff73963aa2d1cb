package rollout

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// ensureRecord creates the record's object.
func (r *Reconciler) ensureRecord(ctx context.Context) error {
	key := cluster.RolloutKey(r.Profile)
	return cluster.Ensure(ctx, r.Client, &v1alpha1.NetworkRollout{}, &v1alpha1.NetworkRollout{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})
}

// adopt begins the record with the cluster's present state.
func (r *Reconciler) adopt(ctx context.Context) error {
	ds, err := r.Live.DaemonSet(ctx)
	if err != nil {
		return err
	}
	if !ds.Found {
		r.Log.Info("waiting for the CSI plugin", "daemonset", ds.Name)
		return nil // its creation is an event
	}
	clients, err := r.Live.Clients(ctx)
	if err != nil {
		return err
	}
	record := rollout.Adopt(ds, clients)
	r.Log.Info("beginning a record", "clients", record.Clients.String())
	return r.writeRecord(ctx, func(status *v1alpha1.NetworkRolloutStatus) error {
		if status.Recorded {
			return nil // the cache was stale
		}
		status.Recorded = true
		since := metav1.NewMicroTime(r.now())
		status.Servers.Since = &since
		status.Clients.Network = record.Clients.String()
		status.Servers.Network = record.Servers.String()
		status.Clients.VolumeNetworks = texts(record.VolumeClients)
		return nil
	})
}

// follow updates the record with what the storage system rolls out by itself.
func (r *Reconciler) follow(ctx context.Context, facts rollout.Rollout) (ctrl.Result, error) {
	if observed := rollout.Observe(facts); observed.Clients != facts.Record.Clients || observed.Servers != facts.Record.Servers {
		return ctrl.Result{}, r.writeRecord(ctx, func(status *v1alpha1.NetworkRolloutStatus) error {
			status.Clients.Network, status.Servers.Network = observed.Clients.String(), observed.Servers.String()
			since := metav1.NewMicroTime(r.now())
			status.Servers.Since = &since
			return nil
		})
	}
	step := rollout.Step{Phase: rollout.PhaseWaiting, Message: "waiting for the storage system to apply it", Updated: len(facts.Clients), Total: facts.DaemonSet.Wanted}
	if facts.Record.Clients == facts.Desired && facts.Record.Servers == facts.Desired {
		step.Applied, step.Phase, step.Message = true, rollout.PhaseApplied, "applied by the storage system"
	}
	after, err := r.reportRollout(ctx, facts, step)
	return ctrl.Result{RequeueAfter: after}, err
}

// recordStep writes one half of the record, if the record is as it was decided on, and the roll-out's
// progress: a crash after the write must not leave the status Applied.
func (r *Reconciler) recordStep(ctx context.Context, facts rollout.Rollout, step rollout.Step) error {
	decidedOn := facts.Record
	return r.writeRecord(ctx, func(status *v1alpha1.NetworkRolloutStatus) error {
		if status.Clients.Network != decidedOn.Clients.String() || status.Servers.Network != decidedOn.Servers.String() ||
			!slices.Equal(status.Clients.VolumeNetworks, texts(decidedOn.VolumeClients)) || !slices.Equal(status.Servers.VolumeNetworks, texts(decidedOn.VolumeServers)) {
			return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("networkrollouts").GroupResource(), r.Profile.Name, errRecordMoved)
		}
		setProgress(status, facts, step)
		since := metav1.NewMicroTime(r.now())
		switch step.Action {
		case rollout.RecordClients:
			status.Clients.Network = step.Network.String()
		case rollout.RecordVolumeClients:
			status.Clients.VolumeNetworks = texts(step.Networks)
		case rollout.RecordServers:
			status.Servers.Network, status.Servers.Since = step.Network.String(), &since
		case rollout.RecordVolumeServers:
			status.Servers.VolumeNetworks, status.Servers.Since = texts(step.Networks), &since
		}
		return nil
	})
}

func texts(attachments []storage.Attachment) []string {
	var list []string
	for _, a := range attachments {
		list = append(list, a.String())
	}
	return list
}

var errRecordMoved = fmt.Errorf("the record has changed since the decision")

// writeRecord changes the record as it is stored now; a write in between is a conflict.
func (r *Reconciler) writeRecord(ctx context.Context, change func(*v1alpha1.NetworkRolloutStatus) error) error {
	rollout, err := r.Live.RolloutObject(ctx)
	if err != nil {
		return err
	}
	if err := change(&rollout.Status); err != nil {
		return err
	}
	if err := r.Client.Status().Update(ctx, rollout); err != nil {
		return fmt.Errorf("writing the network record: %w", err)
	}
	return nil
}

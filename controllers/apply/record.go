package apply

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// keepRecord keeps the record in step with the cluster: it begins a missing record, completes the replacement of a Service that
// an earlier leader began, and follows a storage system that applies settings by itself. An error delays no setting.
func (r *Reconciler) keepRecord(ctx context.Context, facts rollout.Rollout) (wrote bool, _ error) {
	record := facts.Record
	switch {
	case record.Problem != "": // its correction is an event
		return false, nil
	case record.Unknown && !facts.DaemonSet.Found:
		r.Log.Info("waiting for the CSI plugin", "daemonset", facts.DaemonSet.Name)
		return false, nil // its creation is an event
	case record.Unknown:
		return r.adopt(ctx)
	}
	if record.Replacing != "" {
		if wrote, err := r.resumeReplacing(ctx, record); wrote || err != nil {
			return wrote, err
		}
	}
	if !r.Applies && facts.Invalid == nil {
		return r.follow(ctx, facts)
	}
	return false, nil
}

// adopt begins the record with the cluster's present state.
func (r *Reconciler) adopt(ctx context.Context) (wrote bool, _ error) {
	facts, _, err := r.Live.Rollout(ctx, r.Clock.Now())
	if err != nil || !facts.DaemonSet.Found {
		return false, err
	}
	record := rollout.Adopt(facts.DaemonSet, facts.Clients)
	r.Log.Info("beginning a record", "clients", record.Clients.String())
	err = r.writeRecord(ctx, func(status *v1alpha1.NetworkRolloutStatus) error {
		if status.Recorded {
			return nil // the cache was stale
		}
		status.Recorded = true
		since := r.microTime()
		status.Servers.Since = &since
		status.Clients.Network = record.Clients.String()
		status.Servers.Network = record.Servers.String()
		status.Clients.VolumeNetworks = texts(record.VolumeClients)
		return nil
	})
	return err == nil, err
}

// follow updates the record with what the storage system rolls out by itself.
func (r *Reconciler) follow(ctx context.Context, facts rollout.Rollout) (wrote bool, _ error) {
	observed := rollout.Observe(facts)
	if observed.Clients == facts.Record.Clients && observed.Servers == facts.Record.Servers {
		return false, nil
	}
	err := r.writeRecord(ctx, func(status *v1alpha1.NetworkRolloutStatus) error {
		since := r.microTime()
		status.Clients.Network, status.Servers.Network, status.Servers.Since = observed.Clients.String(), observed.Servers.String(), &since
		return nil
	})
	return err == nil, err
}

// recordStep writes one half of the record, if the record is as it was decided on, and the roll-out's
// progress: a crash after the write must not leave the status Applied.
func (r *Reconciler) recordStep(ctx context.Context, facts rollout.Rollout, step rollout.Step) error {
	decidedOn := facts.Record
	return r.writeRecord(ctx, func(status *v1alpha1.NetworkRolloutStatus) error {
		if status.Clients.Network != decidedOn.Clients.String() || status.Servers.Network != decidedOn.Servers.String() ||
			!slices.Equal(status.Clients.VolumeNetworks, texts(decidedOn.VolumeClients)) || !slices.Equal(status.Servers.VolumeNetworks, texts(decidedOn.VolumeServers)) {
			return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("networkrollouts").GroupResource(), longhorn.Name, errRecordMoved)
		}
		setProgress(status, facts, step)
		since := r.microTime()
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

func texts(attachments []multus.Attachment) []string {
	var list []string
	for _, a := range attachments {
		list = append(list, a.String())
	}
	return list
}

var errRecordMoved = fmt.Errorf("the record has changed since the decision")

// microTime is the time as the API stores it, to the microsecond.
func (r *Reconciler) microTime() metav1.MicroTime {
	return metav1.NewMicroTime(r.Clock.Now().Truncate(time.Microsecond))
}

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

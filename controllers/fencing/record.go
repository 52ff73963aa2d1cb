package fencing

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// write records a decision, if the record is as it was read. Label and finalizer come before the
// status of a lost node, and after the status of a healthy one: they never hide an incident, nor
// let its record be deleted. The view then has the record as it was written.
func (r *Reconciler) write(ctx context.Context, d decision) error {
	record := &v1alpha1.NodeFence{}
	if d.Record != nil {
		record = d.Record.DeepCopy()
	} else {
		record.Name = d.Facts.Record
		record.Labels, record.Finalizers = metaOf(record, d.Status)
		record.Labels[fence.NodeLabel] = fence.LabelValue(d.Facts.Node.Name)
		if err := r.Client.Create(ctx, record); err != nil {
			return fmt.Errorf("creating NodeFence %s: %w", record.Name, err)
		}
	}
	if fence.Keep(d.Status) || !fence.Keep(record.Status) && fence.PhaseLabelValue(d.Status) != string(v1alpha1.NodeHealthy) {
		if err := r.writeMeta(ctx, record, d.Status); err != nil {
			return err
		}
	}
	if !equality.Semantic.DeepEqual(record.Status, d.Status) {
		record.Status = *d.Status.DeepCopy()
		if err := r.Client.Status().Update(ctx, record); err != nil {
			return fmt.Errorf("recording in NodeFence %s: %w", record.Name, err)
		}
		r.report(record, d)
	}
	if err := r.writeMeta(ctx, record, d.Status); err != nil {
		return err
	}
	d.FenceView.Record, d.Facts.Status = record, record.Status
	return nil
}

// writeMeta writes label and finalizer, if they differ.
func (r *Reconciler) writeMeta(ctx context.Context, record *v1alpha1.NodeFence, status v1alpha1.NodeFenceStatus) error {
	if !metaDiffers(record, status) {
		return nil
	}
	labels, finalizers := metaOf(record, status)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": record.ResourceVersion, "labels": labels, "finalizers": finalizers,
	}})
	if err != nil {
		return fmt.Errorf("labelling NodeFence %s: %w", record.Name, err)
	}
	if err := r.Client.Patch(ctx, record, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("labelling NodeFence %s: %w", record.Name, err)
	}
	return nil
}

func metaDiffers(record *v1alpha1.NodeFence, status v1alpha1.NodeFenceStatus) bool {
	labels, finalizers := metaOf(record, status)
	return record.Labels[fence.PhaseLabel] != labels[fence.PhaseLabel] || !slices.Equal(record.Finalizers, finalizers)
}

// metaOf is the label and all finalizers that a record should have with a status.
func metaOf(record *v1alpha1.NodeFence, status v1alpha1.NodeFenceStatus) (labels map[string]string, finalizers []string) {
	labels = map[string]string{fence.PhaseLabel: fence.PhaseLabelValue(status)}
	finalizers = slices.Clone(record.Finalizers)
	has := slices.Contains(finalizers, fence.RecordFinalizer)
	switch {
	case !fence.Keep(status):
		finalizers = slices.DeleteFunc(finalizers, func(f string) bool { return f == fence.RecordFinalizer })
	case !has && record.DeletionTimestamp == nil: // no finalizer can be added to a terminating object
		finalizers = append(finalizers, fence.RecordFinalizer)
	}
	return labels, finalizers
}

// forget deletes the record of a machine that is gone and holds nothing.
func (r *Reconciler) forget(ctx context.Context, d decision) error {
	if d.Record == nil {
		return nil
	}
	record := d.Record.DeepCopy()
	if slices.Contains(record.Finalizers, fence.RecordFinalizer) {
		if err := r.writeMeta(ctx, record, v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeHealthy}); err != nil {
			return err
		}
	}
	r.metrics.since.Delete(record.Name)
	if d.Facts.Node.Name != "" && !d.Facts.Replaced {
		r.seen.Delete(d.Facts.Node.Name)
	}
	if record.DeletionTimestamp != nil {
		return nil // it ends with the last finalizer
	}
	err := r.Client.Delete(ctx, record, client.Preconditions{UID: &record.UID, ResourceVersion: &record.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting NodeFence %s: %w", record.Name, err)
	}
	r.Log.Info("forgot a machine", "node", d.Facts.Node.Name, "nodeFence", record.Name)
	return nil
}

package fencing

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// remember writes the memory of a decision, if the record is as it was read: spec, label, finalizer and the request of a person, which
// is consumed, in one write. The view then has the record as it was written.
func (r *Reconciler) remember(ctx context.Context, d decision) error {
	record := &v1alpha1.NodeFence{}
	if d.Record != nil {
		record = d.Record.DeepCopy()
	}
	record.Name, record.Spec = d.Facts.Record, *d.Spec.DeepCopy()
	record.Labels, record.Finalizers = metaOf(record, d.Spec)
	if d.Consumed {
		delete(record.Annotations, fence.OverrideAnnotation)
		delete(record.Annotations, fence.OverriddenAnnotation)
	}
	var err error
	if d.Record == nil {
		err = r.Client.Create(ctx, record)
	} else {
		err = r.Client.Update(ctx, record)
	}
	if err != nil {
		return fmt.Errorf("recording in NodeFence %s: %w", record.Name, err)
	}
	r.reportAct(record, d)
	d.FenceView.Record, d.Facts.RecordUID, d.Facts.Spec, d.Facts.Request = record, string(record.UID), record.Spec, fence.Request{}
	return nil
}

// writeStatus writes what follows from the memory.
func (r *Reconciler) writeStatus(ctx context.Context, d decision) error {
	if d.Record == nil || !d.statusDiffers() {
		return nil
	}
	record := d.Record.DeepCopy()
	record.Status = *d.Status.DeepCopy()
	if err := r.Client.Status().Update(ctx, record); err != nil {
		return fmt.Errorf("writing the status of NodeFence %s: %w", record.Name, err)
	}
	r.report(record, d)
	d.FenceView.Record = record
	return nil
}

func metaDiffers(record *v1alpha1.NodeFence, spec v1alpha1.NodeFenceSpec) bool {
	labels, finalizers := metaOf(record, spec)
	return !equality.Semantic.DeepEqual(record.Labels, labels) || !slices.Equal(record.Finalizers, finalizers)
}

func metaOf(record *v1alpha1.NodeFence, spec v1alpha1.NodeFenceSpec) (labels map[string]string, finalizers []string) {
	labels = map[string]string{}
	for key, value := range record.Labels {
		labels[key] = value
	}
	labels[fence.NodeLabel] = fence.LabelValue(spec.NodeName)
	if delete(labels, fence.IncidentLabel); fence.InIncident(spec) {
		labels[fence.IncidentLabel] = "true"
	}
	finalizers = slices.Clone(record.Finalizers)
	has := slices.Contains(finalizers, fence.RecordFinalizer)
	switch {
	case !fence.Keep(spec):
		finalizers = slices.DeleteFunc(finalizers, func(f string) bool { return f == fence.RecordFinalizer })
	case !has && record.DeletionTimestamp == nil: // no finalizer can be added to a terminating object
		finalizers = append(finalizers, fence.RecordFinalizer)
	}
	return labels, finalizers
}

// forget deletes the record of a boot of which nothing is held or fenced any more.
func (r *Reconciler) forget(ctx context.Context, d decision) error {
	if d.Record == nil {
		return nil
	}
	record := d.Record.DeepCopy()
	if i := slices.Index(record.Finalizers, fence.RecordFinalizer); i >= 0 {
		record.Finalizers = slices.Delete(record.Finalizers, i, i+1)
		if err := r.Client.Update(ctx, record); err != nil {
			return fmt.Errorf("forgetting NodeFence %s: %w", record.Name, err)
		}
	}
	r.reportForgotten(d)
	r.metrics.since.Delete(record.Name)
	if record.DeletionTimestamp != nil {
		return nil // it ends with the last finalizer
	}
	err := r.Client.Delete(ctx, record, client.Preconditions{UID: &record.UID, ResourceVersion: &record.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting NodeFence %s: %w", record.Name, err)
	}
	r.Log.Info("forgot a boot", "node", d.Facts.Node.Name, "nodeFence", record.Name)
	return nil
}

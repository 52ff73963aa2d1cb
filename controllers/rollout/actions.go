package rollout

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

var errUnknownAction = errors.New("unknown action")

// do carries out one step. The state that was decided on is the write's precondition.
func (r *Reconciler) do(ctx context.Context, facts rollout.Rollout, step rollout.Step) error {
	switch step.Action {
	case rollout.RecordServers, rollout.RecordClients, rollout.RecordVolumeServers, rollout.RecordVolumeClients:
		return r.recordStep(ctx, facts, step)
	case rollout.UpdateTemplate:
		return r.updateTemplate(ctx, append([]storage.Attachment{facts.Record.Clients}, facts.Record.VolumeClients...))
	case rollout.RestartClients:
		return r.restartClients(ctx, facts.Record, step.Clients)
	case rollout.ResumeTemplate:
		return r.patchDaemonSet(ctx, func(ds *appsv1.DaemonSet) error {
			ds.Spec.UpdateStrategy = cluster.OwnStrategy(ds)
			delete(ds.Annotations, cluster.StrategyAnnotation)
			return nil
		})
	case rollout.ReplaceServices:
		for _, s := range step.Services {
			if err := r.replaceService(ctx, s, facts.Record, facts.RequestOf(s.Volume)); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("%w %q", errUnknownAction, step.Action)
}

// updateTemplate writes the networks into the template. The same write pauses the DaemonSet
// controller's rolling update, which would restart pods of nodes with attached volumes.
func (r *Reconciler) updateTemplate(ctx context.Context, networks []storage.Attachment) error {
	return r.patchDaemonSet(ctx, func(ds *appsv1.DaemonSet) error {
		annotation, err := storage.SetManaged(ds.Spec.Template.Annotations[storage.NetworksAnnotation], ds.Namespace, r.Profile.Interfaces(), networks...)
		if err != nil {
			return err
		}
		if ds.Spec.Template.Annotations == nil {
			ds.Spec.Template.Annotations = map[string]string{}
		}
		ds.Spec.Template.Annotations[storage.NetworksAnnotation] = annotation
		if annotation == "" {
			delete(ds.Spec.Template.Annotations, storage.NetworksAnnotation)
		}
		return cluster.Pause(ds)
	})
}

func (r *Reconciler) patchDaemonSet(ctx context.Context, change func(*appsv1.DaemonSet) error) error {
	ds, err := r.Live.DaemonSetObject(ctx)
	if err != nil {
		return err
	}
	before := ds.DeepCopy()
	if err := change(ds); err != nil {
		return err
	}
	if err := r.Client.Patch(ctx, ds, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("patching DaemonSet %s: %w", ds.Name, err)
	}
	return nil
}

func (r *Reconciler) restartClients(ctx context.Context, record rollout.Record, clients []storage.Client) error {
	where := "the cluster network"
	if !record.Clients.IsZero() {
		where = record.Clients.Network.String()
	}
	for _, a := range record.VolumeClients {
		where += ", " + a.Network.String()
	}
	for _, c := range clients {
		names, err := r.restartedFor(ctx, record, c)
		if err != nil {
			return err
		}
		uid := types.UID(c.UID)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.Profile.Namespace, Name: c.Pod, UID: uid}}
		err = r.Client.Delete(ctx, pod, client.Preconditions{UID: &uid})
		if kit.IsStale(err) {
			continue // deleted or replaced
		}
		if err != nil {
			return fmt.Errorf("restarting pod %s: %w", c.Pod, err)
		}
		r.counted(names)
		r.Log.Info("restarted a CSI plugin pod", "pod", c.Pod, "node", c.Node, "network", where)
		r.Events.Eventf(pod, nil, corev1.EventTypeNormal, "Restarted", "Restart", "restarted by Fairlead to be on %s; no RWX volume is attached on %s", where, c.Node)
	}
	return nil
}

package apply

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/planner"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

var errUnknownAction = errors.New("unknown action")

// stepNetwork takes the plan's step of the network. A refused write is kept: other work goes on, and the next look reports it.
func (r *Reconciler) stepNetwork(ctx context.Context, facts planner.Facts, made planner.Plan) error {
	step := made.Network
	r.Log.Info("next step", "action", step.Action, "network", step.Network.String(), "message", step.Message, "volumes", step.Volumes.Message)
	kind, name := written(facts.Rollout, step)
	err := r.doNetwork(ctx, facts, made)
	switch {
	case err == nil:
		r.refusals.remove(kind, name)
		return nil
	case kit.IsStale(err): // another write came first, and is the next event
		r.Log.Info("stepped aside", "action", step.Action, "error", err.Error())
		return nil
	case name != "" && kit.IsRefused(err):
		r.refuse(kind, name, err)
		r.wakeIn(workAfterRefusal)
		return nil
	}
	return fmt.Errorf("%s: %w", step.Action, err)
}

// written names the object that a step writes; "" is the record.
func written(facts rollout.Rollout, step rollout.Step) (kind catalog.BlockerKind, name string) {
	switch step.Action {
	case rollout.UpdateTemplate, rollout.ResumeTemplate:
		return catalog.BlockedByDaemonSet, facts.DaemonSet.Name
	case rollout.RestartClients:
		return catalog.BlockedByClient, step.Clients[0].Pod
	case rollout.ReplaceServices:
		return catalog.BlockedByService, step.Services[0].Name
	}
	return "", ""
}

// doNetwork carries out the plan's step of the network. The state that was decided on is the write's precondition.
func (r *Reconciler) doNetwork(ctx context.Context, all planner.Facts, made planner.Plan) error {
	facts := all.Rollout
	switch step := made.Network; step.Action {
	case rollout.RecordServers, rollout.RecordClients, rollout.RecordVolumeServers, rollout.RecordVolumeClients:
		return r.recordStep(ctx, facts, step)
	case rollout.UpdateTemplate:
		return r.updateTemplate(ctx, facts.DaemonSet, append([]multus.Attachment{facts.Record.Clients}, facts.Record.VolumeClients...))
	case rollout.RestartClients:
		return r.restartClient(ctx, all, step.Clients[0], made.Settings)
	case rollout.ResumeTemplate:
		ds := r.clientDaemonSet()
		return r.patch(ctx, ds, facts.DaemonSet.Version, func() error {
			ds.Spec.UpdateStrategy = reads.OwnStrategy(ds)
			delete(ds.Annotations, rwx.StrategyAnnotation)
			return nil
		})
	case rollout.ReplaceServices:
		s := step.Services[0]
		return r.replaceService(ctx, s, facts.Record, facts.RequestOf(s.Volume))
	default:
		return fmt.Errorf("%w %q", errUnknownAction, step.Action)
	}
}

func (r *Reconciler) clientDaemonSet() *appsv1.DaemonSet {
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: r.Names.Namespace, Name: r.Names.ClientDaemonSet}}
}

// updateTemplate writes the networks into the template. The same write pauses the DaemonSet
// controller's rolling update, which would restart pods of nodes with attached volumes.
func (r *Reconciler) updateTemplate(ctx context.Context, seen rollout.DaemonSet, networks []multus.Attachment) error {
	ds := r.clientDaemonSet()
	return r.patch(ctx, ds, seen.Version, func() error {
		annotation, err := multus.SetManaged(ds.Spec.Template.Annotations[multus.NetworksAnnotation], ds.Namespace, r.Names.Interfaces(), networks...)
		if err != nil {
			return err
		}
		if ds.Spec.Template.Annotations == nil {
			ds.Spec.Template.Annotations = map[string]string{}
		}
		ds.Spec.Template.Annotations[multus.NetworksAnnotation] = annotation
		if annotation == "" {
			delete(ds.Spec.Template.Annotations, multus.NetworksAnnotation)
		}
		return reads.Pause(ds)
	})
}

// patch changes an object of the version that was judged; a write since is a conflict.
func (r *Reconciler) patch(ctx context.Context, object client.Object, judged string, change func() error) error {
	if err := r.API.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return fmt.Errorf("reading %s: %w", object.GetName(), err)
	}
	if object.GetResourceVersion() != judged {
		return apierrors.NewConflict(schema.GroupResource{Group: appsv1.GroupName}, object.GetName(), errJudgedBefore)
	}
	before := object.DeepCopyObject().(client.Object)
	if err := change(); err != nil {
		return err
	}
	if err := r.Client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("patching %s: %w", object.GetName(), err)
	}
	return nil
}

var errJudgedBefore = errors.New("it has changed since the decision")

// restartClient deletes a client pod. It counts for the settings that are not applied, and choose its network if the pod is on
// another network, or else build its template. A default that was in effect before, and a per-volume network, do not count.
func (r *Reconciler) restartClient(ctx context.Context, facts planner.Facts, c rwx.Client, settings []planner.SettingPlan) error {
	record := facts.Rollout.Record
	uid := types.UID(c.UID)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.Names.Namespace, Name: c.Pod, UID: uid}}
	if err := r.Client.Delete(ctx, pod, client.Preconditions{UID: &uid}); err != nil {
		return fmt.Errorf("restarting pod %s: %w", c.Pod, err)
	}
	if c.IsOn(record.Clients) {
		if r.unreported == nil {
			r.unreported = map[string]int{}
		}
		r.unreported[c.Node]++
	}
	for _, s := range settings {
		last := facts.Reported[s.Name].Rolled
		if s.Applied || s.Value.Source == catalog.SourceDefault && (last == nil || *last == s.Value.Text) {
			continue
		}
		if on := c.IsOn(record.Clients); !on && s.ChoosesNetwork || on && buildsClients(r.Names, s.Name, s.Value.Text) {
			r.metrics.restarts.WithLabelValues(string(s.Name), clientKind).Inc()
		}
	}
	where := "the cluster network"
	if !record.Clients.IsZero() {
		where = record.Clients.Network.String()
	}
	for _, a := range record.VolumeClients {
		where += ", " + a.Network.String()
	}
	r.Log.Info("restarted a CSI plugin pod", "pod", c.Pod, "node", c.Node, "network", where)
	r.Events.Eventf(pod, nil, corev1.EventTypeNormal, "Restarted", "Restart", "restarted by Fairlead to be on %s; no RWX volume is attached on %s", where, c.Node)
	return nil
}

// buildsClients reports whether a setting's value is part of the CSI plugin's template.
func buildsClients(names longhorn.Names, name catalog.Name, value string) bool {
	d, _ := catalog.Lookup(string(name))
	if d.Wants == nil {
		return false
	}
	normal, err := d.Normalize(value)
	if err != nil {
		return false
	}
	_, concerns := d.Wants(normal, catalog.Component{Kind: catalog.DaemonSetComponent, Name: names.ClientDaemonSet, Client: true}, nil)
	return concerns
}

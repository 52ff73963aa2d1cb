package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/plan"
	"github.com/fairlead-io/fairlead/internal/storage/longhorn"
)

var errInUse = errors.New("the instance manager has just started")

// do does one piece of work. The state that was decided on is the write's precondition.
func (r *Reconciler) do(ctx context.Context, facts plan.Facts, work plan.Work) error {
	var err error
	var object client.Object
	switch work.Action {
	case plan.RestartComponent:
		object, err = r.restart(ctx, work.Component)
	case plan.RemoveComponent:
		object, err = r.remove(ctx, work.Component)
	case plan.UpdateComponent:
		object, err = r.update(ctx, facts.Values, work)
	}
	if err != nil {
		return fmt.Errorf("%s %s %s: %w", strings.ToLower(string(work.Action)), work.Component.Kind, work.Component.Name, err)
	}
	names := joinNames(work.Settings)
	r.backoff.record(work, facts, nil)
	r.metrics.worked(work)
	r.Log.Info("did a piece of work", "action", work.Action, "kind", work.Component.Kind, "component", work.Component.Name,
		"node", work.Component.Node, "settings", names)
	why := ""
	if work.Component.Kind == catalog.InstanceManager {
		why = "; no engine or replica runs on it"
	}
	r.Events.Eventf(object, nil, corev1.EventTypeNormal, pastTense[work.Action], "Apply", "by Fairlead for settings %s%s", names, why)
	return nil
}

var pastTense = map[plan.WorkAction]string{
	plan.RestartComponent: "Restarted", plan.RemoveComponent: "Removed", plan.UpdateComponent: "Updated",
}

func joinNames(names []catalog.Name) string {
	var texts []string
	for _, n := range names {
		texts = append(texts, string(n))
	}
	return strings.Join(texts, ", ")
}

// restart deletes exactly the pod that was decided on. A pod that was idle is left alone if it runs
// something now.
func (r *Reconciler) restart(ctx context.Context, c catalog.Component) (client.Object, error) {
	uid := types.UID(c.UID)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.Profile.Namespace, Name: c.Name, UID: uid}}
	preconditions := client.Preconditions{UID: &uid}
	if c.Stopped {
		preconditions.ResourceVersion = &c.Version
	} else if err := r.stillIdle(ctx, c); err != nil {
		return pod, err
	}
	return pod, r.Client.Delete(ctx, pod, preconditions)
}

// remove deletes an instance manager; its pod goes with it.
func (r *Reconciler) remove(ctx context.Context, c catalog.Component) (client.Object, error) {
	manager := &longhorn.InstanceManager{ObjectMeta: metav1.ObjectMeta{Namespace: r.Profile.Namespace, Name: c.Name}}
	if err := r.stillIdle(ctx, c); err != nil {
		return manager, err
	}
	uid := types.UID(c.ManagerUID)
	return manager, r.Client.Delete(ctx, manager, client.Preconditions{UID: &uid, ResourceVersion: &c.ManagerVersion})
}

// stillIdle reads what an instance manager runs right before its deletion: a new engine changes
// neither the pod nor, yet, the instance manager.
func (r *Reconciler) stillIdle(ctx context.Context, c catalog.Component) error {
	if c.Kind != catalog.InstanceManager {
		return nil
	}
	uses, err := r.Live.InstanceManagerUses(ctx, c)
	if err != nil || len(uses) == 0 {
		return err
	}
	return apierrors.NewConflict(corev1.Resource("pods"), c.Name, fmt.Errorf("%w %s", errInUse, strings.Join(uses, ", "))) // the engine is an event
}

// update writes the wanted traits into a template.
func (r *Reconciler) update(ctx context.Context, values catalog.Values, work plan.Work) (client.Object, error) {
	named := metav1.ObjectMeta{Namespace: r.Profile.Namespace, Name: work.Component.Name}
	if work.Component.Kind == catalog.Deployment {
		d := &appsv1.Deployment{ObjectMeta: named}
		return d, r.patch(ctx, d, func() error {
			return writeTraits(r.Profile.TolerationsAnnotation, d, &d.Spec.Template, values, work.Wants)
		})
	}
	ds := &appsv1.DaemonSet{ObjectMeta: named}
	return ds, r.patch(ctx, ds, func() error {
		if err := writeTraits(r.Profile.TolerationsAnnotation, ds, &ds.Spec.Template, values, work.Wants); err != nil || !work.Component.Client {
			return err
		}
		// Steps of the network restart its pods, each when no RWX volume is attached on its node.
		return cluster.Pause(ds)
	})
}

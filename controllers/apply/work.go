package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/planner"
)

var errInUse = errors.New("the instance manager has just started")

// do does one piece of work. The state that was decided on is the write's precondition.
func (r *Reconciler) do(ctx context.Context, facts planner.Facts, work planner.Work) error {
	var err error
	var object client.Object
	switch work.Action {
	case planner.RestartComponent:
		object, err = r.restart(ctx, work.Component)
	case planner.RemoveComponent:
		object, err = r.remove(ctx, work.Component)
	case planner.UpdateComponent:
		object, err = r.update(ctx, facts.Values, work)
	}
	if err != nil {
		return fmt.Errorf("%s %s %s: %w", strings.ToLower(string(work.Action)), work.Component.Kind, work.Component.Name, err)
	}
	names := strings.Join(catalog.Texts(work.Settings), ", ")
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

var pastTense = map[planner.WorkAction]string{
	planner.RestartComponent: "Restarted", planner.RemoveComponent: "Removed", planner.UpdateComponent: "Updated",
}

// restart deletes exactly the pod that was decided on. A pod that was idle is left alone if it runs
// something now.
func (r *Reconciler) restart(ctx context.Context, c catalog.Component) (client.Object, error) {
	uid := types.UID(c.UID)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.Names.Namespace, Name: c.Name, UID: uid}}
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
	manager := &longhorn.InstanceManager{ObjectMeta: metav1.ObjectMeta{Namespace: r.Names.Namespace, Name: c.Name}}
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
func (r *Reconciler) update(ctx context.Context, values catalog.Values, work planner.Work) (client.Object, error) {
	named := metav1.ObjectMeta{Namespace: r.Names.Namespace, Name: work.Component.Name}
	if work.Component.Kind == catalog.Deployment {
		d := &appsv1.Deployment{ObjectMeta: named}
		return d, r.patch(ctx, d, work.Component.Version, func() error {
			return writeTraits(r.Names.TolerationsAnnotation, d, &d.Spec.Template, values, work.Wants)
		})
	}
	ds := &appsv1.DaemonSet{ObjectMeta: named}
	return ds, r.patch(ctx, ds, work.Component.Version, func() error {
		if err := writeTraits(r.Names.TolerationsAnnotation, ds, &ds.Spec.Template, values, work.Wants); err != nil || !work.Component.Client {
			return err
		}
		// Steps of the network restart its pods, each when no RWX volume is attached on its node.
		return reads.Pause(ds)
	})
}

var errNotOfTemplates = errors.New("is not written into templates")

// writeTraits writes the wanted traits into a template as longhorn-manager would, whose own controller
// then finds nothing to do. The annotation keeps the tolerations that were applied last.
func writeTraits(annotation string, object client.Object, template *corev1.PodTemplateSpec, values catalog.Values, wants map[catalog.Trait]planner.Want) error {
	for trait, want := range wants {
		value := values[want.Setting].Text
		var err error
		switch trait {
		case catalog.Tolerations:
			err = writeTolerations(annotation, object, &template.Spec, value)
		case catalog.NodeSelector:
			template.Spec.NodeSelector, err = catalog.ParseNodeSelector(value)
		case catalog.PriorityClassName:
			template.Spec.PriorityClassName = want.Text
		case catalog.ProbePeriod, catalog.ProbeTimeout, catalog.ProbeFailures:
			err = writeProbe(&template.Spec, trait, want.Text)
		case catalog.Resources:
			err = writeResources(object.GetName(), &template.Spec, value)
		default:
			err = errNotOfTemplates
		}
		if err != nil {
			return fmt.Errorf("%s: %w", trait, err)
		}
	}
	return nil
}

// writeTolerations adds the wanted tolerations and removes those applied earlier. Tolerations of
// others stay.
func writeTolerations(annotation string, object client.Object, pod *corev1.PodSpec, value string) error {
	wanted, err := catalog.ParseTolerations(value)
	if err != nil {
		return err
	}
	var before []corev1.Toleration
	if text := object.GetAnnotations()[annotation]; text != "" {
		if err := json.Unmarshal([]byte(text), &before); err != nil {
			before = nil // unknown what was applied: all tolerations stay
		}
	}
	kept := slices.DeleteFunc(slices.Clone(pod.Tolerations), func(t corev1.Toleration) bool {
		return slices.Contains(before, t) || slices.Contains(wanted, t)
	})
	pod.Tolerations = append(kept, wanted...)
	text, err := json.Marshal(append([]corev1.Toleration{}, wanted...)) // [], never null
	if err != nil {
		return err
	}
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotation] = string(text)
	object.SetAnnotations(annotations)
	return nil
}

func writeProbe(pod *corev1.PodSpec, trait catalog.Trait, text string) error {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return err
	}
	for i := range pod.Containers {
		probe := pod.Containers[i].LivenessProbe
		if probe == nil {
			continue
		}
		switch trait {
		case catalog.ProbePeriod:
			probe.PeriodSeconds = int32(n)
		case catalog.ProbeTimeout:
			probe.TimeoutSeconds = int32(n)
		case catalog.ProbeFailures:
			probe.FailureThreshold = int32(n)
		}
	}
	return nil
}

// writeResources sets the containers' resources to the value; unnamed containers get none.
func writeResources(object string, pod *corev1.PodSpec, value string) error {
	resources, err := catalog.ParseCSIResources(value)
	if err != nil {
		return err
	}
	for i := range pod.Containers {
		if name := pod.Containers[i].Name; slices.Contains(catalog.CSIContainers(object), name) {
			pod.Containers[i].Resources = resources[name]
		}
	}
	return nil
}

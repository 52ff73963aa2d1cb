package standin

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/eventually"
	"github.com/fairlead-io/fairlead/e2e/sandbox/changes"
	"github.com/fairlead-io/fairlead/e2e/sandbox/standin/release"
)

// InstallComponents makes what longhorn-manager runs beside the CSI plugin,
// and waits until all of it is ready: the sidecars' Deployments, the engine
// image's DaemonSet, an instance manager on every node and a backing image manager
// on the first. RunComponents keeps it so.
func (l Longhorn) InstallComponents(ctx context.Context) error {
	if err := l.deploySidecars(ctx); err != nil {
		return err
	}
	if err := l.deployEngineImage(ctx); err != nil {
		return err
	}
	var nodes corev1.NodeList
	if err := l.client.List(ctx, &nodes); err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	for i := range nodes.Items {
		if err := l.createNode(ctx, nodes.Items[i].Name); err != nil {
			return err
		}
	}
	if len(nodes.Items) > 0 {
		if err := l.createBackingImageManager(ctx, nodes.Items[0].Name); err != nil {
			return err
		}
	}
	return l.waitComponents(ctx)
}

// RunComponents does what longhorn-manager does with its instance managers and
// backing image managers, until the context ends: it recreates their pods, follows
// them in their status, and has them run the engines and replicas that are to
// run. Pods that a setting has changed for are restarted only by RestartIdle and SyncSettings.
func (l Longhorn) RunComponents(ctx context.Context) {
	lists := []client.ObjectList{&corev1.PodList{}, listOf("Setting"), listOf("Node"), listOf("InstanceManager"),
		listOf("BackingImageManager"), listOf("Engine"), listOf("Replica")}
	last := ""
	changes.Follow(ctx, l.client, func() {
		if err := l.finishRound(ctx); err != nil && !apierrors.IsConflict(err) && err.Error() != last {
			last = err.Error()
			fmt.Fprintf(l.out, "in place of Longhorn's manager: %v\n", err)
		}
	}, lists, client.InNamespace(l.namespace))
}

// finishRound does not leave a round half done when the context ends.
func (l Longhorn) finishRound(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return l.syncComponents(ctx)
}

// syncComponents goes once over everything, and on past what fails.
func (l Longhorn) syncComponents(ctx context.Context) error {
	s, err := l.survey(ctx)
	if err != nil {
		return err
	}
	problems := []error{l.followEngines(ctx, s)}
	for i := range s.managers {
		problems = append(problems, l.syncPod(ctx, s, &s.managers[i], instanceManagerPod))
	}
	for i := range s.backingManagers {
		problems = append(problems, l.syncPod(ctx, s, &s.backingManagers[i], backingImageManagerPod))
	}
	return errors.Join(append(problems, l.syncInstances(ctx))...)
}

// waitComponents does what RunComponents does until everything is ready. Where
// that runs too, the one who is late tries again.
func (l Longhorn) waitComponents(ctx context.Context) error {
	return eventually.Until(ctx, "Longhorn's components", time.Minute, func() error {
		if err := l.syncComponents(ctx); err != nil {
			return err
		}
		return l.componentsReady(ctx)
	})
}

var errNotReady = errors.New("not ready")

func (l Longhorn) componentsReady(ctx context.Context) error {
	s, err := l.survey(ctx)
	if err != nil {
		return err
	}
	for _, node := range s.storageNodes {
		for engine, setting := range map[string]string{engineV1: "v1-data-engine", engineV2: "v2-data-engine"} {
			if release.SwitchedOn(s.settings[setting]) && s.manager(node.GetName(), engine) == nil {
				return fmt.Errorf("the instance manager of %s on %s: %w", engine, node.GetName(), errNotReady)
			}
		}
	}
	for _, o := range append(s.managers, s.backingManagers...) {
		if state := text(&o, "status", "currentState"); state != stateRunning {
			return fmt.Errorf("%s is %s: %w", o.GetName(), state, errNotReady)
		}
	}
	return l.templatesReady(ctx)
}

func (l Longhorn) templatesReady(ctx context.Context) error {
	templates, err := l.templates(ctx)
	for _, o := range templates {
		ready := false
		switch o := o.(type) {
		case *appsv1.Deployment:
			ready = o.Status.ReadyReplicas == *o.Spec.Replicas
		case *appsv1.DaemonSet:
			ready = o.Status.ObservedGeneration > 0 && o.Status.NumberReady == o.Status.DesiredNumberScheduled
		}
		if !ready {
			return fmt.Errorf("the pods of %T %s: %w", o, o.GetName(), errNotReady)
		}
	}
	return err
}

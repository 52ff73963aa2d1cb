package standin

import (
	"context"
	"crypto/sha512"
	"encoding/hex"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox/standin/release"
)

// Data engines.
const (
	engineV1 = "v1"
	engineV2 = "v2"
)

const instanceManagerImage = "longhornio/longhorn-instance-manager:" + release.Default

// disableV2Label on a node keeps the v2 data engine off it.
const disableV2Label = "node.longhorn.io/disable-v2-data-engine"

func checksum(text string) string {
	sum := sha512.Sum512([]byte(text))
	return hex.EncodeToString(sum[:])
}

// instanceManagerName follows GetInstanceManagerName in types/types.go.
func instanceManagerName(node, engine string) string {
	return "instance-manager-" + checksum(node + instanceManagerImage + engine)[:32]
}

// instanceManagerLabels follows GetInstanceManagerLabels in types/types.go.
func instanceManagerLabels(node, engine string) map[string]string {
	canonical := canonicalImage(instanceManagerImage)
	return map[string]string{
		"longhorn.io/managed-by": "longhorn-manager", "longhorn.io/component": "instance-manager",
		"longhorn.io/instance-manager-type": "aio", "longhorn.io/instance-manager-image": "imi-" + checksum(canonical)[:8],
		"longhorn.io/node": node, "longhorn.io/data-engine": engine,
	}
}

// followEngines makes the instance managers of the data engines that are switched
// on, and removes those of one that is switched off once they run nothing.
func (l Longhorn) followEngines(ctx context.Context, s *survey) error {
	enabled := map[string]bool{
		engineV1: release.SwitchedOn(s.settings["v1-data-engine"]), engineV2: release.SwitchedOn(s.settings["v2-data-engine"]),
	}
	for _, node := range s.storageNodes {
		for engine, on := range enabled {
			name := node.GetName()
			on = on && !(engine == engineV2 && s.nodes[name].Labels[disableV2Label] == "true")
			manager := s.manager(name, engine)
			switch {
			case on && manager == nil:
				if err := l.createInstanceManager(ctx, name, engine); err != nil {
					return err
				}
			case !on && manager != nil && len(instancesOf(manager)) == 0:
				if err := l.deleteInstanceManager(ctx, manager); err != nil {
					return err
				}
			case manager != nil:
				if err := l.syncBudget(ctx, s, manager); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (l Longhorn) createInstanceManager(ctx context.Context, node, engine string) error {
	im := l.object("InstanceManager", instanceManagerName(node, engine))
	im.SetLabels(instanceManagerLabels(node, engine))
	im.Object["spec"] = map[string]any{"image": instanceManagerImage, "nodeID": node, "type": "aio", "dataEngine": engine}
	if err := l.create(ctx, im); err != nil {
		return err
	}
	return l.create(ctx, disruptionBudget(im))
}

// syncBudget follows syncInstanceManagerPDB: on a cordoned node, an instance manager that runs nothing may be evicted.
// Longhorn also lets one with replicas go whose volumes have other replicas; here a volume has one.
func (l Longhorn) syncBudget(ctx context.Context, s *survey, im *unstructured.Unstructured) error {
	evictable := s.nodes[text(im, "spec", "nodeID")].Spec.Unschedulable && len(instancesOf(im)) == 0
	switch has := s.budgets[im.GetName()]; {
	case evictable && has:
		if err := client.IgnoreNotFound(l.client.Delete(ctx, disruptionBudget(im))); err != nil {
			return fmt.Errorf("deleting PodDisruptionBudget %s: %w", im.GetName(), err)
		}
	case !evictable && !has:
		return l.create(ctx, disruptionBudget(im))
	}
	return nil
}

// deleteInstanceManager leaves its pod to Kubernetes' garbage collector.
func (l Longhorn) deleteInstanceManager(ctx context.Context, im *unstructured.Unstructured) error {
	for _, o := range []client.Object{im, disruptionBudget(im)} {
		if err := client.IgnoreNotFound(l.client.Delete(ctx, o)); err != nil {
			return fmt.Errorf("deleting %T %s: %w", o, o.GetName(), err)
		}
	}
	return nil
}

// disruptionBudget keeps a drain away from the pod; Longhorn has one for each.
func disruptionBudget(im *unstructured.Unstructured) *policyv1.PodDisruptionBudget {
	one := intstr.FromInt32(1)
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: im.GetNamespace(), Name: im.GetName()},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &one,
			Selector:     &metav1.LabelSelector{MatchLabels: instanceManagerLabels(text(im, "spec", "nodeID"), text(im, "spec", "dataEngine"))},
		},
	}
}

// instanceManagerPod follows createInstanceManagerPodSpec in controller/instance_manager_controller.go.
// It is nil where Longhorn makes none: on a cordoned node.
func instanceManagerPod(im *unstructured.Unstructured, s *survey) (*corev1.Pod, error) {
	name, engine := text(im, "spec", "nodeID"), text(im, "spec", "dataEngine")
	node, found := s.nodes[name]
	if !found || node.Spec.Unschedulable {
		return nil, nil
	}
	resources, err := s.instanceManagerResources(name, engine)
	if err != nil {
		return nil, err
	}
	pod := managerPod(im, "instance-manager")
	pod.Labels = instanceManagerLabels(name, engine)
	container := &pod.Spec.Containers[0]
	container.Args = []string{"instance-manager", "--debug", "daemon", "--listen", "0.0.0.0:8500"}
	container.Resources = resources
	container.LivenessProbe = livenessProbe()
	s.settings.buildManager(pod)
	if engine == engineV2 {
		s.settings.runV2(pod)
	}
	return pod, s.settings.buildOnStorageNetwork(pod)
}

package standin

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// survey is what the stand-in has seen in one look at the cluster.
type survey struct {
	// settings as they are, and those that pods are built by.
	settings settingValues
	// nodes of Kubernetes by name; storageNodes are Longhorn's objects for them.
	nodes        map[string]corev1.Node
	storageNodes []unstructured.Unstructured
	// managers of instances and of backing images, which have a pod of their name each.
	managers, backingManagers []unstructured.Unstructured
	pods                      map[string]*corev1.Pod
	// budgets are the names of PodDisruptionBudgets.
	budgets map[string]bool
}

func (l Longhorn) survey(ctx context.Context) (*survey, error) {
	s := &survey{nodes: map[string]corev1.Node{}, pods: map[string]*corev1.Pod{}, budgets: map[string]bool{}}
	var err error
	if s.settings, err = l.currentSettings(ctx); err != nil {
		return nil, err
	}
	for kind, into := range map[string]*[]unstructured.Unstructured{
		"Node": &s.storageNodes, "InstanceManager": &s.managers, "BackingImageManager": &s.backingManagers,
	} {
		if *into, err = l.list(ctx, kind); err != nil {
			return nil, err
		}
	}
	var nodes corev1.NodeList
	if err := l.client.List(ctx, &nodes); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	for _, node := range nodes.Items {
		s.nodes[node.Name] = node
	}
	var pods corev1.PodList
	if err := l.client.List(ctx, &pods, client.InNamespace(l.namespace)); err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	for i := range pods.Items {
		s.pods[pods.Items[i].Name] = &pods.Items[i]
	}
	var budgets policyv1.PodDisruptionBudgetList
	if err := l.client.List(ctx, &budgets, client.InNamespace(l.namespace)); err != nil {
		return nil, fmt.Errorf("listing PodDisruptionBudgets: %w", err)
	}
	for i := range budgets.Items {
		s.budgets[budgets.Items[i].Name] = true
	}
	return s, nil
}

// manager of the instances of a data engine on a node; nil if there is none.
func (s *survey) manager(node, engine string) *unstructured.Unstructured {
	return managerOn(s.managers, node, engine)
}

func managerOn(managers []unstructured.Unstructured, node, engine string) *unstructured.Unstructured {
	for i := range managers {
		if m := &managers[i]; text(m, "spec", "nodeID") == node && text(m, "spec", "dataEngine") == engine {
			return m
		}
	}
	return nil
}

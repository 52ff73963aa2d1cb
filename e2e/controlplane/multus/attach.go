package multus

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	netv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// attach gives one pod its networks. An error means: try again.
func (s *Simulator) attach(ctx context.Context, name cache.ObjectName) error {
	pod, err := s.pods.Pods(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading pod %s: %w", name, err)
	}
	if !waiting(pod) {
		return nil
	}
	if _, err := s.nodes.Get(pod.Spec.NodeName); err != nil {
		// The node is no simulated one, or is lost. If it comes back, its pods
		// are looked at again.
		return nil
	}

	statuses, left, err := s.statuses(pod)
	if err != nil {
		// A kubelet would fail to make the sandbox and say so in these words.
		// Addresses that were given already are taken back, as CNI DEL does.
		s.ledger.takeBack(pod.UID)
		s.events.Eventf(pod, corev1.EventTypeWarning, "FailedCreatePodSandBox",
			"Failed to create pod sandbox: plugin type=\"multus\" failed (add): %v", err)
		return err
	}
	if left > 0 {
		s.queue.AddAfter(name, left)
		return nil
	}
	return s.publish(ctx, pod, statuses)
}

// statuses gives addresses on every network the pod asks for, or on none. If it
// is too early for them, it says by how much.
func (s *Simulator) statuses(pod *corev1.Pod) ([]netv1.NetworkStatus, time.Duration, error) {
	elements, err := parseRequest(pod.Annotations[netv1.NetworkAttachmentAnnot], pod.Namespace)
	if err != nil {
		return nil, 0, err
	}
	var networks []*netv1.NetworkAttachmentDefinition
	for _, element := range elements {
		network, err := s.networks.NetworkAttachmentDefinitions(element.Namespace).Get(element.Name)
		if err != nil {
			return nil, 0, fmt.Errorf("cannot find a network-attachment-definition (%s) in namespace (%s): %w", element.Name, element.Namespace, err)
		}
		networks = append(networks, network)
	}
	late, err := delay(pod, networks)
	if err != nil {
		return nil, 0, err
	}
	if left := s.ledger.left(pod.UID, late, time.Now()); left > 0 {
		return nil, left, nil
	}

	statuses := []netv1.NetworkStatus{defaultStatus(pod)}
	for i, element := range elements {
		from, err := parseConfig(networks[i].Spec.Config)
		if err != nil {
			return nil, 0, fmt.Errorf("network %s/%s: %w", element.Namespace, element.Name, err)
		}
		addresses, err := s.ledger.assign(pod.UID, element.InterfaceRequest, from, element.IPRequest)
		if err != nil {
			return nil, 0, fmt.Errorf("network %s/%s: %w", element.Namespace, element.Name, err)
		}
		statuses = append(statuses, networkStatus(pod, element, addresses))
	}
	return statuses, 0, nil
}

// publish writes the annotation through the status subresource, as Multus does,
// so that admission sees the same request. The UID keeps it from a pod that
// took the name meanwhile.
func (s *Simulator) publish(ctx context.Context, pod *corev1.Pod, statuses []netv1.NetworkStatus) error {
	annotation, err := encodeStatus(statuses)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         pod.UID,
		"annotations": map[string]string{netv1.NetworkStatusAnnot: annotation},
	}})
	if err != nil {
		return fmt.Errorf("encoding the network status of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	_, err = s.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err == nil {
		s.ledger.attached(pod.UID)
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		// Gone, or another pod of that name by now, which is queued by itself.
		// Its deletion may have been seen before the addresses were given.
		s.ledger.release(pod.UID)
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing the network status of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// DelayAnnotation on a pod, or on a network for all pods that ask for it, is how
// long after its start a pod gets its networks: "3s". Taken away or shortened,
// it lets go those that wait already.
const DelayAnnotation = "simulator.fairlead.io/delay"

// delay is the longest that the pod or one of its networks asks for.
func delay(pod *corev1.Pod, networks []*netv1.NetworkAttachmentDefinition) (longest time.Duration, _ error) {
	texts := []string{pod.Annotations[DelayAnnotation]}
	for _, network := range networks {
		texts = append(texts, network.Annotations[DelayAnnotation])
	}
	for _, text := range texts {
		if text == "" {
			continue
		}
		asked, err := time.ParseDuration(text)
		if err != nil {
			return 0, fmt.Errorf("parsing annotation %s: %w", DelayAnnotation, err)
		}
		longest = max(longest, asked)
	}
	return longest, nil
}

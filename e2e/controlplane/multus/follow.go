package multus

import (
	"fmt"
	"slices"

	netv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
)

// follow connects the watches to the queue. The result tells whether everything
// that was there at the start has been seen.
func (s *Simulator) follow(pods, nodes, networks cache.SharedIndexInformer) ([]cache.InformerSynced, error) {
	var registered []cache.InformerSynced
	for _, watch := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{pods, cache.ResourceEventHandlerFuncs{AddFunc: s.podAdded, UpdateFunc: s.podUpdated, DeleteFunc: s.podDeleted}},
		// A node that comes back and a network that appears or is corrected
		// may be what pods have been waiting for.
		{nodes, cache.ResourceEventHandlerFuncs{AddFunc: func(any) { s.retryWaiting() }}},
		{networks, cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { s.retryWaiting() },
			UpdateFunc: func(any, any) { s.retryWaiting() },
		}},
	} {
		registration, err := watch.informer.AddEventHandler(watch.handler)
		if err != nil {
			return nil, fmt.Errorf("following what the Multus simulator watches: %w", err)
		}
		registered = append(registered, registration.HasSynced)
	}
	return registered, nil
}

func (s *Simulator) podAdded(object any) {
	if pod, ok := object.(*corev1.Pod); ok {
		s.enqueue(pod)
	}
}

func (s *Simulator) podUpdated(before, after any) {
	old, ok := before.(*corev1.Pod)
	if !ok {
		return
	}
	pod, ok := after.(*corev1.Pod)
	if !ok {
		return
	}
	// A watch that was interrupted may show a pod and its successor of the same
	// name as one update.
	if old.UID != pod.UID {
		s.ledger.release(old.UID)
	} else if reported(old) && !reported(pod) {
		// Its sandbox is gone; the next one is attached anew.
		s.ledger.renew(pod.UID)
	}
	if finished(pod) {
		s.ledger.release(pod.UID)
	}
	s.enqueue(pod)
}

func (s *Simulator) podDeleted(object any) {
	if unseen, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unseen.Obj
	}
	if pod, ok := object.(*corev1.Pod); ok {
		s.ledger.release(pod.UID)
	}
}

func (s *Simulator) enqueue(pod *corev1.Pod) {
	if waiting(pod) {
		s.queue.Add(cache.MetaObjectToName(pod))
	}
}

// retryWaiting looks at all waiting pods again, now rather than when their
// retry is due.
func (s *Simulator) retryWaiting() {
	pods, err := s.pods.List(labels.Everything())
	if err != nil {
		// Listing from memory fails only for objects of another type.
		return
	}
	for _, pod := range pods {
		s.enqueue(pod)
	}
}

// waiting tells whether a pod should have networks and has none yet. On the
// host network there is nothing to attach to, and Multus does nothing at all.
func waiting(pod *corev1.Pod) bool {
	return pod.Annotations[netv1.NetworkAttachmentAnnot] != "" &&
		!reported(pod) &&
		!pod.Spec.HostNetwork &&
		!sandboxDied(pod) &&
		pod.Spec.NodeName != "" &&
		pod.Status.Phase == corev1.PodRunning &&
		pod.Status.PodIP != "" &&
		pod.DeletionTimestamp == nil
}

// reported tells whether a status says something. Multus leaves an empty list
// when it has detached a sandbox.
func reported(pod *corev1.Pod) bool {
	status := pod.Annotations[netv1.NetworkStatusAnnot]
	return status != "" && status != "[]"
}

// sandboxDied tells whether a pod has lost its sandbox and has no other yet.
func sandboxDied(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReadyToStartContainers && c.Status == corev1.ConditionFalse
	})
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func eventSink(client kubernetes.Interface) record.EventSink {
	return &typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")}
}

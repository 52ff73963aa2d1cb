package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Longhorn writes objects of the deprecated API.
type (
	classicEndpoints     = corev1.Endpoints      //nolint:staticcheck // as above
	classicEndpointsList = corev1.EndpointsList  //nolint:staticcheck // as above
	classicSubset        = corev1.EndpointSubset //nolint:staticcheck // as above
)

// shareEndpoints follows createEndpoint in controller/share_manager_controller.go: for Services of both kinds, since
// Longhorn is mostly faster than Kubernetes' controller.
func shareEndpoints(sm *unstructured.Unstructured) *classicEndpoints {
	return &classicEndpoints{ObjectMeta: metav1.ObjectMeta{
		Namespace: sm.GetNamespace(), Name: sm.GetName(), Labels: shareLabels(sm.GetName()), OwnerReferences: owner(sm, false),
	}}
}

// RunEndpoints does what controller/kubernetes_endpoint_controller.go of Longhorn v1.7.2 does, until the context ends:
// it fills the Endpoints of share managers with the addresses of their pods, ready or not.
func (l Longhorn) RunEndpoints(ctx context.Context) {
	changed, ended := l.changes(ctx, &corev1.PodList{}, &classicEndpointsList{})
	defer ended()
	for last := ""; ; {
		if err := l.syncEndpoints(ctx); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && err.Error() != last {
			last = err.Error()
			fmt.Fprintf(l.out, "in place of Longhorn's endpoint controller: %v\n", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-time.After(time.Second): // after a refused write; Longhorn retries too
		}
	}
}

func (l Longhorn) syncEndpoints(ctx context.Context) error {
	values, err := l.buildSettings(ctx)
	if err != nil {
		return err
	}
	var list classicEndpointsList
	if err := l.client.List(ctx, &list, client.InNamespace(l.namespace)); err != nil {
		return fmt.Errorf("listing Endpoints: %w", err)
	}
	for i := range list.Items {
		e := &list.Items[i]
		// An object that another owner has taken over is left alone, however it came about.
		ofShareManager := slices.ContainsFunc(e.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "ShareManager" })
		if !ofShareManager || e.DeletionTimestamp != nil {
			continue
		}
		if err := l.fillEndpoints(ctx, e, l.release.published(values)); err != nil {
			return err
		}
	}
	return nil
}

// fillEndpoints follows syncShareManager, which asks neither for readiness nor for phase. A pod without an address
// makes an object that the API server refuses: the write is tried again when the pod changes.
func (l Longhorn) fillEndpoints(ctx context.Context, e *classicEndpoints, network string) error {
	var pods corev1.PodList
	labels := shareLabels(e.Name)
	labels["longhorn.io/component"] = "share-manager"
	if err := l.client.List(ctx, &pods, client.InNamespace(l.namespace), client.MatchingLabels(labels)); err != nil {
		return fmt.Errorf("listing servers of %s: %w", e.Name, err)
	}
	var subsets []classicSubset
	for i := range pods.Items {
		subsets = append(subsets, shareSubset(&pods.Items[i], network))
	}
	if sameTargets(e.Subsets, subsets) {
		return nil
	}
	e.Subsets = subsets
	if err := l.client.Update(ctx, e); err != nil && !apierrors.IsInvalid(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing Endpoints %s: %w", e.Name, err)
	}
	return nil
}

// shareSubset follows createDesiredSubsetForShareManager.
func shareSubset(pod *corev1.Pod, network string) classicSubset {
	return classicSubset{
		Addresses: []corev1.EndpointAddress{{ //nolint:staticcheck // the deprecated API
			IP: podAddress(pod, network), NodeName: &pod.Spec.NodeName,
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		}},
		Ports: []corev1.EndpointPort{{Name: "nfs", Port: 2049, Protocol: corev1.ProtocolTCP}}, //nolint:staticcheck // the deprecated API
	}
}

// sameTargets compares addresses and their pods only, as Longhorn does.
func sameTargets(have, want []classicSubset) bool {
	targets := func(subsets []classicSubset) map[string]*corev1.ObjectReference {
		byAddress := map[string]*corev1.ObjectReference{}
		for _, s := range subsets {
			for _, a := range s.Addresses {
				byAddress[a.IP] = a.TargetRef
			}
		}
		return byAddress
	}
	return reflect.DeepEqual(targets(have), targets(want))
}

// podAddress follows GetStorageIPFromPod in datastore/kubernetes.go: the address on a network, by its name whatever the
// interface, and the pod's own where Multus reports none.
func podAddress(pod *corev1.Pod, network string) string {
	var reported []struct {
		Name string   `json:"name"`
		IPs  []string `json:"ips"`
	}
	if network == "" || json.Unmarshal([]byte(pod.Annotations["k8s.v1.cni.cncf.io/network-status"]), &reported) != nil {
		return pod.Status.PodIP
	}
	for _, r := range reported {
		if r.Name == network && len(r.IPs) > 0 {
			return slices.Min(r.IPs)
		}
	}
	return pod.Status.PodIP
}

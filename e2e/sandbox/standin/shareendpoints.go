//lint:file-ignore SA1019 Longhorn writes the deprecated API

package standin

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox/changes"
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
// it fills the Endpoints of share managers with the addresses of their pods, ready or not. It does not look when a pod
// is gone: the last address stays until something else happens to the object.
func (l Longhorn) RunEndpoints(ctx context.Context) {
	var one sync.Mutex
	var running sync.WaitGroup
	for _, list := range []client.ObjectList{&corev1.PodList{}, &classicEndpointsList{}} {
		running.Go(func() {
			changes.Each(ctx, l.client, list, func(event watch.Event) {
				one.Lock()
				defer one.Unlock()
				o, ok := event.Object.(client.Object)
				if !ok || event.Type == watch.Deleted || o.GetDeletionTimestamp() != nil {
					return // a pod that terminates is still in Longhorn's cache, and changes nothing
				}
				for _, owner := range o.GetOwnerReferences() {
					if owner.Kind == "ShareManager" {
						l.syncEndpoints(ctx, owner.Name)
					}
				}
			}, client.InNamespace(l.namespace))
		})
	}
	running.Wait()
}

// syncEndpoints tries until no other write came between.
func (l Longhorn) syncEndpoints(ctx context.Context, name string) {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { return l.syncEndpointsOnce(ctx, name) })
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(l.out, "in place of Longhorn's endpoint controller: %v\n", err)
	}
}

func (l Longhorn) syncEndpointsOnce(ctx context.Context, name string) error {
	values, err := l.currentSettings(ctx)
	if err != nil {
		return err
	}
	var e classicEndpoints
	if err := l.client.Get(ctx, client.ObjectKey{Namespace: l.namespace, Name: name}, &e); err != nil {
		return client.IgnoreNotFound(err)
	}
	// An object that another owner has taken over is left alone.
	ofShareManager := slices.ContainsFunc(e.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "ShareManager" })
	if !ofShareManager || e.DeletionTimestamp != nil {
		return nil
	}
	return l.fillEndpoints(ctx, &e, l.release.Published(values))
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
		return err // as it is: a conflict is tried again
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

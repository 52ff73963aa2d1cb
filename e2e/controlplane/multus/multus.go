// Package multus does on simulated nodes what Multus does on real ones, as far
// as the API shows it: a pod that asks for networks gets addresses on them and
// the network-status annotation that says so.
package multus

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	netv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

const (
	// workers keep up with a Deployment of thousands of pods being rolled out.
	workers = 8
	// retryAfter is for a pod that can't have its networks; a change of a network tries it again at once.
	retryAfter = 5 * time.Second
)

// simulator is Multus on all simulated nodes.
type simulator struct {
	client client.Client // reads from a cache
	events events.EventRecorder
	ledger *ledger
}

// Run simulates until the context ends. A node that loses the labels is as good as switched off, and gets no new networks.
func Run(ctx context.Context, config *rest.Config, nodeLabels labels.Set) error {
	config = rest.CopyConfig(config)
	config.UserAgent = "multus-simulator"
	// One pod is one write, and a few hundred milliseconds after its start is
	// the promise: the client must not be what holds it up.
	config.QPS, config.Burst = 500, 1000
	errorsOnly := klog.Background().V(1)
	ctrl.SetLogger(errorsOnly)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, netv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("making the scheme of the Multus simulator: %w", err)
		}
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Logger: errorsOnly, // SetLogger alone loses the level
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject:         map[client.Object]cache.ByObject{&corev1.Node{}: {Label: nodeLabels.AsSelector()}},
		},
	})
	if err != nil {
		return fmt.Errorf("making the manager of the Multus simulator: %w", err)
	}
	s := &simulator{client: manager.GetClient(), events: manager.GetEventRecorder("multus"), ledger: newLedger()}
	// A node that comes back and a network that appears or is changed may be what pods have been waiting for.
	retry := handler.EnqueueRequestsFromMapFunc(s.waitingPods)
	err = ctrl.NewControllerManagedBy(manager).
		For(&corev1.Pod{}, builder.WithPredicates(predicate.NewPredicateFuncs(asks))).
		Watches(&corev1.Node{}, retry, builder.WithPredicates(predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }})).
		Watches(&netv1.NetworkAttachmentDefinition{}, retry).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(s)
	if err != nil {
		return fmt.Errorf("making the controller of the Multus simulator: %w", err)
	}
	return manager.Start(ctx)
}

func (s *simulator) waitingPods(ctx context.Context, _ client.Object) (requests []ctrl.Request) {
	var pods corev1.PodList
	if err := s.client.List(ctx, &pods); err != nil {
		return nil // a cache fails only for objects of another type
	}
	for i := range pods.Items {
		if waiting(&pods.Items[i]) {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&pods.Items[i])})
		}
	}
	return requests
}

// Reconcile gives one pod its networks.
func (s *simulator) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var pod corev1.Pod
	if err := s.client.Get(ctx, request.NamespacedName, &pod); err != nil {
		s.ledger.release(request.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	given := s.ledger.given(&pod)
	if !waiting(&pod) {
		return ctrl.Result{}, nil
	}
	if err := s.client.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, &corev1.Node{}); err != nil {
		// The node is no simulated one, or is lost. If it comes back, its pods are looked at again.
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if given == nil {
		var left time.Duration
		var err error
		if given, left, err = s.attach(ctx, &pod); err != nil {
			// A kubelet would fail to make the sandbox and say so in these words.
			s.events.Eventf(&pod, nil, corev1.EventTypeWarning, "FailedCreatePodSandBox", "CreatePodSandBox",
				"Failed to create pod sandbox: plugin type=\"multus\" failed (add): %v", err)
			return ctrl.Result{RequeueAfter: retryAfter}, nil
		}
		if left > 0 {
			return ctrl.Result{RequeueAfter: left}, nil
		}
	}
	return ctrl.Result{}, s.publish(ctx, &pod, given)
}

// attach gives addresses on every network that the pod asks for, or on none. If it
// is too early for them, it says by how much.
func (s *simulator) attach(ctx context.Context, pod *corev1.Pod) (interfaces []attached, left time.Duration, _ error) {
	elements, err := parseRequest(pod.Annotations[netv1.NetworkAttachmentAnnot], pod.Namespace)
	if err != nil {
		return nil, 0, err
	}
	delays := []string{pod.Annotations[delayAnnotation]}
	for _, element := range elements {
		var network netv1.NetworkAttachmentDefinition
		if err := s.client.Get(ctx, client.ObjectKey{Namespace: element.Namespace, Name: element.Name}, &network); err != nil {
			return nil, 0, fmt.Errorf("cannot find a network-attachment-definition (%s) in namespace (%s): %w", element.Name, element.Namespace, err)
		}
		subnets, err := parseConfig(network.Spec.Config)
		if err != nil {
			return nil, 0, fmt.Errorf("network %s/%s: %w", element.Namespace, element.Name, err)
		}
		interfaces = append(interfaces, attached{NetworkSelectionElement: element, subnets: subnets})
		delays = append(delays, network.Annotations[delayAnnotation])
	}
	for _, text := range delays {
		if delay, err := time.ParseDuration(text); err == nil {
			left = max(left, time.Until(sandboxBegan(pod).Add(delay)))
		}
	}
	if left > 0 {
		return nil, left, nil
	}
	return interfaces, 0, s.ledger.give(pod, interfaces)
}

// delayAnnotation on a pod, or on a network for all pods that ask for it, is how
// long after the start of its sandbox a pod gets its networks: "3s".
const delayAnnotation = "simulator.fairlead.io/delay"

// publish writes the annotation through the status subresource, as Multus does,
// so that admission sees the same request. The UID keeps it from a pod that
// took the name meanwhile, which is looked at by itself.
func (s *simulator) publish(ctx context.Context, pod *corev1.Pod, given []attached) error {
	annotation, err := encodeStatus(pod, given)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "annotations": map[string]string{netv1.NetworkStatusAnnot: annotation},
	}})
	if err != nil {
		return fmt.Errorf("encoding the network status of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	err = s.client.Status().Patch(ctx, pod, client.RawPatch(types.MergePatchType, patch))
	if apierrors.IsConflict(err) {
		return nil // another pod has the name
	}
	return client.IgnoreNotFound(err)
}

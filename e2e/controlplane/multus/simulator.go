// Package multus does on simulated nodes what Multus does on real ones, as far
// as the API shows it: a pod that asks for networks gets addresses on them and
// the network-status annotation that says so.
package multus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	netclient "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/client/clientset/versioned"
	netinformers "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/client/informers/externalversions"
	netlisters "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/client/listers/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
)

// workers keep up with a Deployment of thousands of pods being rolled out.
const workers = 8

// A pod that can't have its networks is tried again after 200 ms first, then
// less and less often, up to the ten seconds or so that a kubelet waits.
const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = 10 * time.Second
)

// Simulator is Multus on all simulated nodes.
type Simulator struct {
	client   kubernetes.Interface
	pods     corelisters.PodLister
	nodes    corelisters.NodeLister
	networks netlisters.NetworkAttachmentDefinitionLister
	events   record.EventRecorder
	queue    workqueue.TypedRateLimitingInterface[cache.ObjectName]
	ledger   *ledger
}

// Run simulates until the context ends. nodeSelector is the label by which
// simulated nodes are known: a node that loses it is as good as switched off,
// and gets no new networks.
func Run(ctx context.Context, config *rest.Config, nodeSelector string) error {
	config = rest.CopyConfig(config)
	config.UserAgent = "multus-simulator"
	// One pod is one write, and a few hundred milliseconds after its start is
	// the promise: the client must not be what holds it up.
	config.QPS, config.Burst = 500, 1000
	networkConfig := rest.CopyConfig(config)
	// Every change of every pod is read here; custom resources have only JSON.
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for the Multus simulator: %w", err)
	}
	networkClient, err := netclient.NewForConfig(networkConfig)
	if err != nil {
		return fmt.Errorf("making a network client for the Multus simulator: %w", err)
	}

	podFactory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(withoutManagedFields))
	nodeFactory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(
		func(options *metav1.ListOptions) { options.LabelSelector = nodeSelector }))
	networkFactory := netinformers.NewSharedInformerFactory(networkClient, 0)
	networks := networkFactory.K8sCniCncfIo().V1().NetworkAttachmentDefinitions()

	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(eventSink(client))
	defer broadcaster.Shutdown()

	simulator := &Simulator{
		client:   client,
		pods:     podFactory.Core().V1().Pods().Lister(),
		nodes:    nodeFactory.Core().V1().Nodes().Lister(),
		networks: networks.Lister(),
		events:   broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "multus"}),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](firstRetry, lastRetry)),
		ledger: newLedger(),
	}
	registered, err := simulator.follow(podFactory.Core().V1().Pods().Informer(), nodeFactory.Core().V1().Nodes().Informer(), networks.Informer())
	if err != nil {
		return err
	}

	var running sync.WaitGroup
	defer running.Wait()
	defer simulator.queue.ShutDown()
	podFactory.StartWithContext(ctx)
	nodeFactory.StartWithContext(ctx)
	networkFactory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), registered...) {
		return nilOnStop(ctx, errors.New("the caches of the Multus simulator did not fill"))
	}
	for range workers {
		running.Go(func() {
			for simulator.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	return nil
}

func nilOnStop(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// next handles one pod. It returns false when the simulator is stopping.
func (s *Simulator) next(ctx context.Context) bool {
	name, stopping := s.queue.Get()
	if stopping {
		return false
	}
	defer s.queue.Done(name)
	if err := s.attach(ctx, name); err != nil {
		s.queue.AddRateLimited(name)
		return true
	}
	s.queue.Forget(name)
	return true
}

// withoutManagedFields drops what nobody here reads and what is often half of
// an object.
func withoutManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

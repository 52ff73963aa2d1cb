package multus

import (
	"encoding/json"
	"testing"
	"time"

	netv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	netlisters "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/client/listers/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
)

// world is a simulator over what a test puts in its stores.
type world struct {
	*Simulator
	podStore, networkStore cache.Indexer
}

func newWorld(t *testing.T, pod *corev1.Pod) world {
	t.Helper()
	store := func(objects ...any) cache.Indexer {
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		for _, object := range objects {
			if err := indexer.Add(object); err != nil {
				t.Fatal(err)
			}
		}
		return indexer
	}
	network := &netv1.NetworkAttachmentDefinition{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "storage"},
		Spec: netv1.NetworkAttachmentDefinitionSpec{
			Config: `{"ipam":{"type":"host-local","ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"fd00:1::/64"}]]}}`,
		},
	}
	w := world{podStore: store(pod), networkStore: store(network)}
	w.Simulator = &Simulator{
		client:   fake.NewClientset(pod),
		pods:     corelisters.NewPodLister(w.podStore),
		nodes:    corelisters.NewNodeLister(store(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.NodeName}})),
		networks: netlisters.NewNetworkAttachmentDefinitionLister(w.networkStore),
		events:   record.NewFakeRecorder(10),
		queue:    workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()),
		ledger:   newLedger(),
	}
	t.Cleanup(w.queue.ShutDown)
	w.podAdded(pod)
	return w
}

// attached lets the simulator look at the pod once, and returns the pod as it
// is then and what is reported of its network.
func (w world) attached(t *testing.T) (*corev1.Pod, netv1.NetworkStatus) {
	t.Helper()
	if w.queue.Len() != 1 || !w.next(t.Context()) {
		t.Fatal("the pod is not in the queue")
	}
	pod, err := w.client.CoreV1().Pods("default").Get(t.Context(), "p", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !reported(pod) {
		return pod, netv1.NetworkStatus{}
	}
	var statuses []netv1.NetworkStatus
	if err := json.Unmarshal([]byte(pod.Annotations[netv1.NetworkStatusAnnot]), &statuses); err != nil || len(statuses) != 2 {
		t.Fatalf("the statuses are %+v, %v", statuses, err)
	}
	return pod, statuses[1]
}

func TestNewSandboxIsAttachedAgain(t *testing.T) {
	pod := runningPod()
	pod.Annotations[netv1.NetworkAttachmentAnnot] = `[{"name":"storage","ips":["fd00:1::77"],"mac":"02:00:00:00:00:01"}]`
	w := newWorld(t, pod)
	before, first := w.attached(t)

	detached := before.DeepCopy()
	detached.Annotations[netv1.NetworkStatusAnnot] = "[]"
	if _, err := w.client.CoreV1().Pods("default").Update(t.Context(), detached, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := w.podStore.Update(detached); err != nil {
		t.Fatal(err)
	}
	w.podUpdated(before, detached)
	_, second := w.attached(t)

	if len(first.IPs) != 2 || len(second.IPs) != 2 {
		t.Fatalf("addresses are %v and then %v", first.IPs, second.IPs)
	}
	if first.IPs[1] == second.IPs[1] {
		t.Errorf("it has %s again", first.IPs[1])
	}
	if first.IPs[0] != "fd00:1::77" || second.IPs[0] != first.IPs[0] {
		t.Errorf("asked for fd00:1::77, it has %s and then %s", first.IPs[0], second.IPs[0])
	}
	if first.Mac != "02:00:00:00:00:01" || second.Mac != first.Mac {
		t.Errorf("asked for a MAC address, it has %s and then %s", first.Mac, second.Mac)
	}
}

func TestLateNetworkIsAttachedLater(t *testing.T) {
	pod := runningPod()
	pod.Annotations[DelayAnnotation] = "1h"
	w := newWorld(t, pod)
	if got, status := w.attached(t); reported(got) {
		t.Fatalf("at once, it has %+v", status)
	}
	if requeues := w.queue.NumRequeues(cache.MetaObjectToName(pod)); requeues != 0 {
		t.Errorf("to be late counts as %d failures", requeues)
	}

	sooner := pod.DeepCopy()
	sooner.Annotations[DelayAnnotation] = time.Nanosecond.String()
	if err := w.podStore.Update(sooner); err != nil {
		t.Fatal(err)
	}
	w.podUpdated(pod, sooner)
	if got, _ := w.attached(t); !reported(got) {
		t.Error("it has no network when time is up")
	}
}

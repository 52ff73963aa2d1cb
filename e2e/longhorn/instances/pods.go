package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"sync"

	rpc "github.com/longhorn/types/pkg/generated/imrpc"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// pods are the running pods of Longhorn's namespace, found by their addresses.
type pods struct {
	mu        sync.Mutex
	byAddress map[string]*pod
	byKey     map[string]*pod
}

// pod is what one simulated pod would keep in memory. It is lost with the pod.
type pod struct {
	uid       string
	addresses map[string]bool
	nextPort  int32
	instances map[string]*rpc.InstanceResponse
	// replicas are the addresses that each engine has.
	replicas map[string][]string
	watchers map[chan struct{}]bool
	// connections end with the pod.
	connections map[net.Conn]bool
}

func newPods() *pods {
	return &pods{byAddress: map[string]*pod{}, byKey: map[string]*pod{}}
}

// follow keeps the pods as the cluster has them, and returns once all are known.
func (p *pods) follow(ctx context.Context, kubeconfig, namespace string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithNamespace(namespace))
	informer := factory.Core().V1().Pods().Informer()
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { p.changed(o.(*corev1.Pod)) },
		UpdateFunc: func(_, o any) { p.changed(o.(*corev1.Pod)) },
		DeleteFunc: func(o any) {
			if missed, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = missed.Obj
			}
			p.end(o.(*corev1.Pod).Name)
		},
	})
	if err != nil {
		return fmt.Errorf("following pods: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return fmt.Errorf("following pods: %w", context.Cause(ctx))
	}
	return nil
}

func (p *pods) changed(o *corev1.Pod) {
	if o.Status.Phase != corev1.PodRunning {
		p.end(o.Name)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.byKey[o.Name]
	if known != nil && known.uid != string(o.UID) {
		p.forget(o.Name)
		known = nil
	}
	if known == nil {
		known = &pod{
			uid: string(o.UID), addresses: map[string]bool{}, nextPort: 10000, instances: map[string]*rpc.InstanceResponse{}, replicas: map[string][]string{},
			watchers: map[chan struct{}]bool{}, connections: map[net.Conn]bool{},
		}
		p.byKey[o.Name] = known
		log.Printf("pod %s runs", o.Name)
	}
	for _, address := range addresses(o) {
		known.addresses[address] = true
		p.byAddress[address] = known
	}
}

// addresses of a pod, those of additional networks included.
func addresses(o *corev1.Pod) []string {
	var found []string
	for _, ip := range o.Status.PodIPs {
		found = append(found, ip.IP)
	}
	var networks []struct{ IPs []string }
	// Without a status there are no additional networks.
	_ = json.Unmarshal([]byte(o.Annotations["k8s.v1.cni.cncf.io/network-status"]), &networks)
	for _, network := range networks {
		found = append(found, network.IPs...)
	}
	return found
}

func (p *pods) end(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(name)
}

// forget loses all that a pod had. The caller holds the lock.
func (p *pods) forget(name string) {
	gone := p.byKey[name]
	if gone == nil {
		return
	}
	delete(p.byKey, name)
	for address := range gone.addresses {
		if p.byAddress[address] == gone {
			delete(p.byAddress, address)
		}
	}
	for connection := range gone.connections {
		_ = connection.Close()
	}
	log.Printf("pod %s ended, and %d instances in it", name, len(gone.instances))
}

// tell wakes all who watch the instances of a pod. The caller holds the lock.
func (o *pod) tell() {
	for watcher := range o.watchers {
		select {
		case watcher <- struct{}{}:
		default: // woken already
		}
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/fairlead-io/fairlead/internal/longhorn"
)

// follower sees every workload pod and every CSI plugin pod come and go.
type follower struct {
	mu        sync.Mutex
	workloads map[string]*life
	clients   map[string]*life
}

// newFollower follows until the context ends.
func newFollower(ctx context.Context, config *rest.Config) (*follower, error) {
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("building a client: %w", err)
	}
	f := &follower{workloads: map[string]*life{}, clients: map[string]*life{}}
	names := longhorn.DefaultNames()
	for _, watch := range []struct {
		namespace string
		labels    map[string]string
		lives     map[string]*life
	}{
		{metav1.NamespaceDefault, workloadLabels(), f.workloads},
		{names.Namespace, names.ClientLabels, f.clients},
	} {
		factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithNamespace(watch.namespace),
			informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = labels.FormatLabels(watch.labels) }))
		_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { f.see(watch.lives, object, false) },
			UpdateFunc: func(_, object any) { f.see(watch.lives, object, false) },
			DeleteFunc: func(object any) { f.see(watch.lives, object, true) },
		})
		if err != nil {
			return nil, fmt.Errorf("following pods: %w", err)
		}
		factory.Start(ctx.Done())
		for _, synced := range factory.WaitForCacheSync(ctx.Done()) {
			if !synced {
				return nil, errors.New("following pods: stopped")
			}
		}
	}
	return f, nil
}

func (f *follower) see(lives map[string]*life, object any, gone bool) {
	if unseen, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unseen.Obj
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	known, ok := lives[string(pod.UID)]
	if !ok {
		known = &life{pod: pod.Name}
		lives[string(pod.UID)] = known
	}
	known.note(pod, gone, time.Now())
}

// note updates the life from the pod. The first end stays: kwok, in the kubelet's place, overwrites it.
func (l *life) note(pod *corev1.Pod, gone bool, now time.Time) {
	l.node = pod.Spec.NodeName
	l.ready = false
	for _, c := range pod.Status.Conditions {
		switch {
		case c.Type == corev1.PodReadyToStartContainers && c.Status == corev1.ConditionTrue:
			l.began = c.LastTransitionTime.Time
		case c.Type == corev1.PodReady:
			l.ready = c.Status == corev1.ConditionTrue
		case c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue:
			l.cause = c.Reason
		}
	}
	if l.ended.IsZero() && pod.DeletionTimestamp != nil {
		// The time has the grace period added.
		l.ended = pod.DeletionTimestamp.Time
		if grace := pod.DeletionGracePeriodSeconds; grace != nil {
			l.ended = l.ended.Add(-time.Duration(*grace) * time.Second)
		}
	}
	if l.ended.IsZero() && gone {
		l.ended = now
	}
	l.ready = l.ready && l.ended.IsZero()
}

// lives copies what has been seen so far.
func (f *follower) lives() (workloads, clients []life) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.workloads {
		workloads = append(workloads, *l)
	}
	for _, l := range f.clients {
		clients = append(clients, *l)
	}
	return workloads, clients
}

func (f *follower) readyWorkloads() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	ready := 0
	for _, l := range f.workloads {
		if l.ready {
			ready++
		}
	}
	return ready
}

// mounts is how many volumes are mounted on how many nodes: pods of one set on
// the same node share an attachment.
func (f *follower) mounts() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	mounts := map[string]bool{}
	for _, l := range f.workloads {
		if l.ready {
			mounts[l.node+" "+l.set()] = true
		}
	}
	return len(mounts)
}

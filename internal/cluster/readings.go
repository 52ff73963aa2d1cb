package cluster

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// readings cache values parsed from pods, one value for the current version of each
// pod. The values are shared, and so read-only.
type readings[T any] struct {
	mu    sync.Mutex
	byUID map[types.UID]reading[T]
}

// maxReadings limits the entries of deleted pods, which stay until keepOnly runs.
const maxReadings = 20_000

type reading[T any] struct {
	version string
	value   T
}

func newReadings[T any]() *readings[T] { return &readings[T]{byUID: map[types.UID]reading[T]{}} }

// of returns the cached value of a pod, or calls read. Pods without a version are not
// cached; nil readings cache nothing.
func (r *readings[T]) of(pod *corev1.Pod, read func(*corev1.Pod) T) T {
	if r == nil || pod.UID == "" || pod.ResourceVersion == "" {
		return read(pod)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.byUID[pod.UID]
	if !ok || known.version != pod.ResourceVersion {
		if len(r.byUID) >= maxReadings {
			clear(r.byUID)
		}
		known = reading[T]{version: pod.ResourceVersion, value: read(pod)}
		r.byUID[pod.UID] = known
	}
	return known.value
}

// keepOnly drops the entries of pods that are not listed.
func (r *readings[T]) keepOnly(listed int, uid func(i int) string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.byUID) <= listed {
		return
	}
	there := make(map[types.UID]bool, listed)
	for i := range listed {
		there[types.UID(uid(i))] = true
	}
	for known := range r.byUID {
		if !there[known] {
			delete(r.byUID, known)
		}
	}
}

package cluster

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// readings keep what was read of pods, each for one version of the pod. They are
// shared, so what they hold is for reading only.
type readings[T any] struct {
	mu    sync.Mutex
	byUID map[types.UID]reading[T]
}

// maxReadings bounds what is kept of pods that are gone and were never listed with the others.
const maxReadings = 20_000

type reading[T any] struct {
	version string
	value   T
}

func newReadings[T any]() *readings[T] { return &readings[T]{byUID: map[types.UID]reading[T]{}} }

// of is what read returns for the pod. A pod that has no version is always read,
// and so is every pod by nil readings.
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

// keepOnly forgets pods that are not among the listed ones.
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

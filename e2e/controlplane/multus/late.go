package multus

import (
	"fmt"
	"sync"
	"time"

	netv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// DelayAnnotation on a pod, or on a network for all pods that ask for it, is how
// long after its start a pod gets its networks: "3s". Taken away or shortened,
// it lets go those that wait already.
const DelayAnnotation = "simulator.fairlead.io/delay"

// delay is the longest that the pod or one of its networks asks for.
func delay(pod *corev1.Pod, networks []*netv1.NetworkAttachmentDefinition) (time.Duration, error) {
	texts := []string{pod.Annotations[DelayAnnotation]}
	for _, network := range networks {
		texts = append(texts, network.Annotations[DelayAnnotation])
	}
	var longest time.Duration
	for _, text := range texts {
		if text == "" {
			continue
		}
		asked, err := time.ParseDuration(text)
		if err != nil {
			return 0, fmt.Errorf("parsing annotation %s: %w", DelayAnnotation, err)
		}
		longest = max(longest, asked)
	}
	return longest, nil
}

// waits knows since when each pod waits for its networks.
type waits struct {
	mu    sync.Mutex
	since map[types.UID]time.Time
}

func newWaits() *waits { return &waits{since: map[types.UID]time.Time{}} }

// left is what is left of a delay for a pod, which begins with the first question.
func (w *waits) left(pod types.UID, delay time.Duration, now time.Time) time.Duration {
	if delay <= 0 {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	since, known := w.since[pod]
	if !known {
		since = now
		w.since[pod] = now
	}
	return since.Add(delay).Sub(now)
}

// over forgets a pod that waits no more.
func (w *waits) over(pod types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.since, pod)
}

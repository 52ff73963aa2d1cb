package workloads

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-io/fairlead/internal/storage"
)

// patience is how long a node may be without a mounting client before it is reported.
const patience = 2 * time.Minute

// waiting is a node whose dead mounts are not detected, because no client can mount there.
type waiting struct {
	since    time.Time
	reported string
}

// wait for a client of the node that can mount. It returns when to check again.
func (r *Reconciler) wait(node string, clients []storage.Client, reason string, policy storage.Restarts) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.waiting[node]
	if w.since.IsZero() {
		w.since = policy.Now
	}
	defer func() { r.waiting[node] = w }()
	if left := w.since.Add(patience).Sub(policy.Now); left > 0 {
		return left
	}
	r.metrics.waiting(node, reason)
	if w.reported == reason {
		return 0 // the end of the wait is an event
	}
	w.reported = reason
	event, why := "NoReadyClient", "no CSI plugin pod is Ready"
	if !policy.Applied.IsZero() {
		why = fmt.Sprintf("no CSI plugin pod is Ready with an address that Multus reports on %s", policy.Applied.Network)
	}
	if reason == storage.ReasonSeveralClients {
		event, why = "SeveralClients", "there are several CSI plugin pods: which of them made a mount is unknown"
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.Profile.Namespace, Name: clients[0].Pod, UID: types.UID(clients[0].UID)}}
	r.Log.Warn("node without a client that can mount", "node", node, "reason", reason, "since", w.since)
	r.Events.Eventf(pod, nil, corev1.EventTypeWarning, event, "Look",
		"on node %s %s, for more than %s: workloads whose mount died are not restarted there", node, why, patience)
	return 0
}

// waited ends the wait.
func (r *Reconciler) waited(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, node)
	r.metrics.waiting(node, "")
}

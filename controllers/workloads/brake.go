package workloads

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

const (
	// brakeWindow is the time in which evictions are counted.
	brakeWindow = time.Minute
	// alwaysAllowed evictions in a window: a few workloads beside a plugin pod that crashes repeatedly are no storm.
	alwaysAllowed = 30
	// countFor is how long a count of the workloads is used.
	countFor = 10 * time.Second
)

// brake stops evictions when there are too many. The count is in memory; the pause is on the
// NetworkRollout.
type brake struct {
	mu        sync.Mutex
	evictions []time.Time
	workloads int
	counted   time.Time
}

// allows reports whether one more eviction is within the share of the workloads. count is called only
// if needed. Evictions in progress are not counted, so the limit may be exceeded by workers-1.
func (b *brake) allows(now time.Time, percent int, count func() (int, error)) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.evictions) > 0 && !now.Before(b.evictions[0].Add(brakeWindow)) {
		b.evictions = b.evictions[1:]
	}
	if len(b.evictions) >= alwaysAllowed {
		if b.counted.IsZero() || !now.Before(b.counted.Add(countFor)) {
			var err error
			if b.workloads, err = count(); err != nil {
				return false, err
			}
			b.counted = now
		}
		if len(b.evictions)*100 >= b.workloads*percent {
			return false, nil
		}
	}
	return true, nil
}

// count counts an eviction that happened.
func (b *brake) count(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.evictions = append(b.evictions, now)
}

// counts returns the evictions of the last minute, and the workloads.
func (b *brake) counts() (evictions, workloads int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.evictions), b.workloads
}

// release begins a new count: an operator has resumed evictions.
func (b *brake) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.evictions = nil
}

// workloads are the pods that use shared volumes, or more: a volume that is
// attached to a node is used there at least once.
func (r *Reconciler) workloads(ctx context.Context) (int, error) {
	volumes, err := r.Cached.Volumes(ctx)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, v := range volumes {
		if v.Shared {
			n += max(len(v.Nodes), len(v.Workloads))
		}
	}
	return n, nil
}

// pause stops all restarts until an operator removes the annotation.
func (r *Reconciler) pause(ctx context.Context) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{rwx.RestartsAnnotation: rwx.RestartsPaused},
	}})
	if err != nil {
		return fmt.Errorf("pausing restarts: %w", err)
	}
	key := reads.RolloutKey(r.Names)
	rollout := &v1alpha1.NetworkRollout{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := r.Client.Patch(ctx, rollout, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("pausing restarts: %w", err)
	}
	evictions, workloads := r.brake.counts()
	r.Log.Error("paused restarts of workloads", "evictions", evictions, "workloads", workloads, "percent", r.MaxPercent)
	r.Events.Eventf(rollout, nil, corev1.EventTypeWarning, "RestartsPaused", "Evict",
		"restarts of workloads are paused: within a minute, %d pods were evicted because of dead mounts, and more have one. "+
			"The limit is %d%% of the %d workloads with RWX volumes, at least %d. Find out why CSI plugin pods restart. To resume, remove annotation %s from NetworkRollout %s",
		evictions, r.MaxPercent, workloads, alwaysAllowed, rwx.RestartsAnnotation, key.Name)
	return nil
}

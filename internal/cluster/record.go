package cluster

import (
	"context"
	"fmt"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// Records caches the parsed network records of profiles, for rules that run at
// every creation of a pod. A record may be slightly stale.
type Records struct {
	byProfile map[string]*atomic.Pointer[rollout.Record]
	synced    func() bool
}

// WatchRecords follows the records of the profiles in the cache.
func WatchRecords(ctx context.Context, objects cache.Cache, profiles []storage.Profile) (*Records, error) {
	if len(profiles) == 0 {
		return &Records{synced: func() bool { return true }}, nil
	}
	informer, err := objects.GetInformer(ctx, &v1alpha1.NetworkRollout{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watching network records: %w", err)
	}
	records := &Records{byProfile: map[string]*atomic.Pointer[rollout.Record]{}}
	for _, p := range profiles {
		records.byProfile[RolloutKey(p).String()] = &atomic.Pointer[rollout.Record]{}
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    records.store,
		UpdateFunc: func(_, object any) { records.store(object) },
	})
	if err != nil {
		return nil, fmt.Errorf("watching network records: %w", err)
	}
	records.synced = registration.HasSynced
	return records, nil
}

// store keeps the last record that could be parsed. A deleted record stays, since
// pods are still built from the template.
func (r *Records) store(object any) {
	rollout, ok := object.(*v1alpha1.NetworkRollout)
	if !ok {
		return
	}
	pointer, ok := r.byProfile[rollout.Namespace+"/"+rollout.Name]
	if !ok {
		return
	}
	if record, err := RecordOf(rollout); err == nil {
		pointer.Store(&record)
	}
}

// Synced reports whether every record of the first list has been stored.
func (r *Records) Synced() bool { return r.synced() }

// Of returns the record of a profile. The record is unknown until the controller creates one.
func (r *Records) Of(p storage.Profile) rollout.Record {
	if pointer := r.byProfile[RolloutKey(p).String()]; pointer != nil {
		if record := pointer.Load(); record != nil {
			return *record
		}
	}
	return rollout.Record{Unknown: true}
}

// MountingOf reads from the NetworkRollout where clients mount volumes.
func MountingOf(rollout *v1alpha1.NetworkRollout) storage.Mounting {
	m := rollout.Status.Clients.Mounts
	if m == nil {
		return storage.Mounting{}
	}
	mounting := storage.Mounting{Place: storage.MountPlace(m.Place), Since: m.Since.Time, Before: storage.MountPlace(m.Before)}
	if m.BeforeSince != nil {
		mounting.BeforeSince = m.BeforeSince.Time
	}
	return mounting
}

// SetMounting writes into the NetworkRollout where clients mount volumes.
func SetMounting(rollout *v1alpha1.NetworkRollout, m storage.Mounting) {
	rollout.Status.Clients.Mounts = &v1alpha1.ClientMounts{
		Place: string(m.Place), Since: metav1.NewMicroTime(m.Since), Before: string(m.Before),
	}
	if !m.BeforeSince.IsZero() {
		rollout.Status.Clients.Mounts.BeforeSince = ptr.To(metav1.NewMicroTime(m.BeforeSince))
	}
}

// Blockers are the first of them, in the form of the API.
func Blockers(blockers []catalog.Blocker) []v1alpha1.Blocker {
	var list []v1alpha1.Blocker
	for _, b := range blockers[:min(len(blockers), v1alpha1.MaxListed)] {
		list = append(list, v1alpha1.Blocker{Kind: string(b.Kind), Name: b.Name, Nodes: b.Nodes, Workloads: b.Workloads, Message: b.Message})
	}
	return list
}

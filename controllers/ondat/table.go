package ondat

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
)

// table keeps the volumes of the last polls, and the outcome of each.
type table struct {
	mu      sync.Mutex
	volumes map[string]ondat.Finding
	// gone are volumes that do not exist any more and have a Service.
	gone   map[string]bool
	claims map[types.NamespacedName][]string
	cache  ondat.Cache
	// outcomes of the last reconciliation, by volume; for metrics, and to report a change once.
	outcomes map[string]outcome
	round    round
	polled   time.Time
}

// outcome of reconciling a volume.
type outcome struct {
	phase   phase
	reason  ondat.Reason
	message string
}

type phase string

const (
	pending   phase = "pending"
	published phase = "published"
	notServed phase = "not_served"
	ignored   phase = "ignored"
)

var phases = []phase{pending, published, notServed, ignored}

// round is the work of a poll, for the metric of how long all volumes took.
type round struct {
	began   time.Time
	waiting map[string]bool
}

func newTable(expiry time.Duration) *table {
	return &table{
		volumes: map[string]ondat.Finding{}, gone: map[string]bool{}, claims: map[types.NamespacedName][]string{},
		cache: ondat.Cache{Expiry: expiry}, outcomes: map[string]outcome{}, round: round{waiting: map[string]bool{}},
	}
}

// update merges a listing, and the IDs of volumes that have a Service. It returns the
// volumes with news. Volumes that could not be listed stay as they are known.
func (t *table) update(l ondat.Listing, served map[string]bool, began, now time.Time) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	volumes, listed := l.Volumes, map[string]bool{}
	for _, v := range l.Volumes {
		listed[v.ID] = true
	}
	for id, f := range t.volumes {
		switch {
		case listed[id]:
		case l.Gone(f.NamespaceID):
			t.gone[id] = true
		default:
			volumes = append(volumes, f.Volume)
			listed[id] = true
		}
	}
	for id := range served {
		if !listed[id] && l.Gone("") {
			t.gone[id] = true
		}
	}
	maps.DeleteFunc(t.gone, func(id string, _ bool) bool { return listed[id] || !served[id] })
	before := t.volumes
	t.volumes, t.claims = make(map[string]ondat.Finding, len(before)), make(map[types.NamespacedName][]string, len(before))
	var news []string
	for _, f := range ondat.Judge(volumes) {
		if f.State == ondat.Plain && !served[f.ID] {
			continue
		}
		t.volumes[f.ID] = f
		if f.PVC != "" && f.Namespace != "" {
			claim := types.NamespacedName{Namespace: f.Namespace, Name: f.PVC}
			t.claims[claim] = append(t.claims[claim], f.ID)
		}
		if !t.cache.Fresh(f, now) {
			news = append(news, f.ID)
		}
	}
	for id := range t.gone {
		if !t.cache.Fresh(goneFinding(id), now) {
			news = append(news, id)
		}
	}
	for id := range before {
		if _, ok := t.volumes[id]; !ok {
			delete(t.outcomes, id)
			if !t.gone[id] {
				t.cache.Drop(id)
			}
		}
	}
	t.polled = now
	if len(t.round.waiting) == 0 {
		t.round.began = began
	}
	for _, id := range news {
		t.round.waiting[id] = true
	}
	return news
}

func goneFinding(id string) ondat.Finding {
	return ondat.Finding{Volume: ondat.Volume{ID: id}, State: ondat.Gone}
}

// find returns the finding for a volume. Before the first poll there is none.
func (t *table) find(id string) (ondat.Finding, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone[id] {
		return goneFinding(id), true
	}
	f, ok := t.volumes[id]
	return f, ok
}

// exists reports whether the control plane has a volume.
func (t *table) exists(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.volumes[id]
	return ok
}

func (t *table) ofClaim(claim types.NamespacedName) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.claims[claim]
}

// setEndpoint records the mount endpoint that was set, so that the next poll has no news.
func (t *table) setEndpoint(f ondat.Finding, endpoint string) ondat.Finding {
	f.Labels = maps.Clone(f.Labels)
	f.Labels[ondat.LabelMountEndpoint] = endpoint
	if endpoint == "" {
		delete(f.Labels, ondat.LabelMountEndpoint)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	// A poll since then may know more.
	if now, ok := t.volumes[f.ID]; ok && now.Version == f.Version {
		t.volumes[f.ID] = f
	}
	return f
}

// settle records that a volume is done, and reports whether its outcome has changed.
func (t *table) settle(f ondat.Finding, now time.Time, o outcome) (changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cache.Add(f, now)
	if f.State == ondat.Gone {
		return false
	}
	changed = t.outcomes[f.ID] != o
	t.outcomes[f.ID] = o
	return changed
}

// done ends a reconciliation. After the last of a round, it returns the round's duration.
func (t *table) done(id string, now time.Time) (time.Duration, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.round.waiting[id] {
		return 0, false
	}
	delete(t.round.waiting, id)
	return now.Sub(t.round.began), len(t.round.waiting) == 0
}

// count is for metrics.
func (t *table) count() (byPhase map[phase]int, byReason map[ondat.Reason]int, polled time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	byPhase, byReason = map[phase]int{}, map[ondat.Reason]int{}
	for id, f := range t.volumes {
		if f.State == ondat.Plain {
			continue
		}
		o, ok := t.outcomes[id]
		if !ok {
			o.phase = pending
		}
		byPhase[o.phase]++
		if o.reason != "" {
			byReason[o.reason]++
		}
	}
	return byPhase, byReason, t.polled
}

package ondat

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
)

// table keeps the volumes of the last polls, and what became of each.
type table struct {
	// expiry is after what time a volume that was settled is checked again.
	expiry time.Duration

	mu sync.Mutex
	// volumes by ID. State Gone: the volume does not exist any more, and still has a Service.
	volumes map[string]ondat.Finding
	claims  map[types.NamespacedName][]string
	// settled are the volumes for which there was nothing left to do.
	settled map[string]settled
	// unfinished are the volumes with news of the polls since began, for the metric of how long all of them took.
	unfinished map[string]bool
	began      time.Time
	polled     time.Time
}

// settled is a volume as it was when nothing was left to do, and the outcome.
type settled struct {
	ondat.Fingerprint
	until time.Time
	outcome
}

// outcome of reconciling a volume.
type outcome struct {
	phase phase
	why   ondat.Refusal
}

type phase string

const (
	pending   phase = "pending"
	published phase = "published"
	notServed phase = "not_served"
	ignored   phase = "ignored"
)

var phases = []phase{pending, published, notServed, ignored}

func newTable(expiry time.Duration) *table {
	return &table{expiry: expiry, volumes: map[string]ondat.Finding{}, settled: map[string]settled{}, unfinished: map[string]bool{}}
}

// update merges a listing, and the IDs of volumes that have a Service. It returns the volumes with news: those that
// have changed since they were settled, that were never settled, or whose time is over. Volumes that could not be
// listed stay as they are known.
func (t *table) update(l ondat.Listing, served map[string]bool, began, now time.Time) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	volumes, listed := l.Volumes, map[string]bool{}
	for _, v := range l.Volumes {
		listed[v.ID] = true
	}
	before := t.volumes
	for id, f := range before {
		if !listed[id] && f.State != ondat.Gone && !l.Gone(f.NamespaceID) {
			volumes = append(volumes, f.Volume)
			listed[id] = true
		}
	}
	t.volumes, t.claims = map[string]ondat.Finding{}, map[types.NamespacedName][]string{}
	for _, f := range ondat.Judge(volumes) {
		if f.State == ondat.Plain && !served[f.ID] {
			continue
		}
		t.volumes[f.ID] = f
		if f.PVC != "" && f.Namespace != "" {
			t.claims[keyOf(f.Namespace, f.PVC)] = append(t.claims[keyOf(f.Namespace, f.PVC)], f.ID)
		}
	}
	for id := range served {
		if _, known := before[id]; !listed[id] && (known || l.Gone("")) {
			t.volumes[id] = ondat.Finding{Volume: ondat.Volume{ID: id}, State: ondat.Gone}
		}
	}
	maps.DeleteFunc(t.settled, func(id string, _ settled) bool { _, known := t.volumes[id]; return !known })
	if t.polled = now; len(t.unfinished) == 0 {
		t.began = began
	}
	var news []string
	for id, f := range t.volumes {
		if s, ok := t.settled[id]; !ok || s.Fingerprint != f.Fingerprint() || !now.Before(s.until) {
			news = append(news, id)
			t.unfinished[id] = true
		}
	}
	return news
}

// wasSettled reports whether a volume was settled before, in whatever way.
func (t *table) wasSettled(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, was := t.settled[id]
	return was
}

// find returns the finding for a volume. Before the first poll there is none.
func (t *table) find(id string) (ondat.Finding, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f, ok := t.volumes[id]
	return f, ok
}

// exists reports whether the control plane has a volume.
func (t *table) exists(id string) bool {
	f, ok := t.find(id)
	return ok && f.State != ondat.Gone
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

// settle records that nothing is left to do for a volume, and reports whether its outcome has changed.
func (t *table) settle(f ondat.Finding, now time.Time, o outcome) (changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	changed = t.settled[f.ID].outcome != o
	t.settled[f.ID] = settled{f.Fingerprint(), now.Add(t.expiry), o}
	return changed
}

// done ends a reconciliation. After the last volume with news, it returns how long all of them took.
func (t *table) done(id string, now time.Time) (time.Duration, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.unfinished[id] {
		return 0, false
	}
	delete(t.unfinished, id)
	return now.Sub(t.began), len(t.unfinished) == 0
}

// count is for metrics.
func (t *table) count() (byPhase map[phase]int, byReason map[ondat.Reason]int, polled time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	byPhase, byReason = map[phase]int{}, map[ondat.Reason]int{}
	for id, f := range t.volumes {
		if f.State == ondat.Plain || f.State == ondat.Gone {
			continue
		}
		s, ok := t.settled[id]
		if !ok {
			s.phase = pending
		}
		byPhase[s.phase]++
		if s.why.Reason != "" {
			byReason[s.why.Reason]++
		}
	}
	return byPhase, byReason, t.polled
}

package ui

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/cli/fences"
	"github.com/fairlead-io/fairlead/cli/nfs"
	"github.com/fairlead-io/fairlead/cli/plan"
	"github.com/fairlead-io/fairlead/cli/status"
	"github.com/fairlead-io/fairlead/internal/datapath"
)

// reading is the cluster at one moment. All views share it, so nothing changes it.
type reading struct {
	at       time.Time
	status   status.View
	fences   []fences.View
	services []nfs.View
	// notes say what could not be read.
	notes []string
	// events and order of nodes are read once a reading, by the first view that asks.
	events func() ([]happening, error)
	order  func() ([]plan.Node, error)
}

// source reads the cluster.
type source interface {
	read(ctx context.Context, now time.Time) (*reading, error)
	// plan of changes to settings.
	plan(ctx context.Context, c plan.Changes, now time.Time) (plan.View, error)
	// suggest returns values for a setting.
	suggest(ctx context.Context, name string) []string
}

// clusterSource reads with the rights of the user.
type clusterSource struct {
	target cli.Target
	// note on the configuration; may be empty.
	note string
}

const roles = "ClusterRole fairlead-planner"

func (s clusterSource) read(ctx context.Context, now time.Time) (*reading, error) {
	r := &reading{at: now, events: sync.OnceValues(s.events)}
	r.order = sync.OnceValues(func() ([]plan.Node, error) { return s.order(now) })
	if s.note != "" {
		r.notes = append(r.notes, s.note)
	}
	var err error
	if r.status, err = status.Read(ctx, s.target, now); err != nil {
		return nil, cli.ExplainBy(err, roles)
	}
	r.notes = append(r.notes, r.status.Notes...)
	r.fences = r.status.Nodes()
	r.services, err = nfs.Read(ctx, s.target.Live, s.target.Configuration.NFS.DefaultServices())
	switch {
	case apierrors.IsForbidden(err):
		r.notes = append(r.notes, "nodes of NFS services are not shown: "+cli.ExplainBy(err, "ClusterRole fairlead-nfs-viewer").Error())
	case err != nil && !errors.Is(err, nfs.ErrNotInstalled):
		return nil, err
	}
	return r, nil
}

// order in which to drain nodes.
func (s clusterSource) order(now time.Time) ([]plan.Node, error) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	view, err := s.plan(ctx, plan.Changes{}, now)
	return view.Nodes, err
}

func (s clusterSource) plan(ctx context.Context, c plan.Changes, now time.Time) (plan.View, error) {
	if s.target.Longhorn == nil {
		return plan.View{}, cli.ErrNoLonghorn
	}
	view, err := plan.Read(ctx, s.target, c, now)
	return view, cli.ExplainBy(err, roles)
}

// volumes are the shared volumes, the worst first.
func (r *reading) volumes() []datapath.Path {
	all := slices.Clone(r.status.Volumes())
	slices.SortStableFunc(all, func(a, b datapath.Path) int {
		return cmp.Or(cmp.Compare(b.State.Severity(), a.State.Severity()), cmp.Compare(a.Volume, b.Volume))
	})
	return all
}

const (
	// readTimeout ends a reading of a cluster that does not answer.
	readTimeout = 15 * time.Second
	// freshFor is how old a reading may be that a view shows without waiting for the next one.
	freshFor = 5 * interval
)

// watch keeps the last reading. It reads only when a view or an open page asks, one reading at a
// time, and not more often than the interval.
type watch struct {
	source   source
	interval time.Duration
	now      func() time.Time

	mu   sync.Mutex
	last state
	// ended is when the last reading ended, well or not.
	ended time.Time
	// underway is closed at the end of the present reading; nil if there is none.
	underway chan struct{}
}

// state is the last good reading, and since when the cluster can't be read.
type state struct {
	reading *reading
	err     error
	since   time.Time
}

func newWatch(s source) *watch { return &watch{source: s, interval: interval, now: time.Now} }

// refresh returns the state after the present reading. A reading starts if the last one is old.
func (w *watch) refresh(ctx context.Context) state {
	if underway := w.start(ctx); underway != nil {
		select {
		case <-underway:
		case <-ctx.Done():
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// look returns the state at once if it is fresh; otherwise it waits for a reading.
func (w *watch) look(ctx context.Context) state {
	w.mu.Lock()
	last, age := w.last, w.now().Sub(w.ended)
	w.mu.Unlock()
	if !w.knows(last) || age > freshFor {
		return w.refresh(ctx)
	}
	w.start(ctx)
	return last
}

func (w *watch) knows(s state) bool { return s.reading != nil || s.err != nil }

// start begins a reading if one is due, and returns the end of the present reading.
func (w *watch) start(ctx context.Context) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.underway == nil && (w.ended.IsZero() || w.now().Sub(w.ended) >= w.interval) {
		w.underway = make(chan struct{})
		go w.read(context.WithoutCancel(ctx)) // others wait for this reading, too
	}
	return w.underway
}

func (w *watch) readOnce(ctx context.Context) (*reading, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return w.source.read(ctx, w.now())
}

// showsWrong reports whether the last reading found something wrong.
func (w *watch) showsWrong() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last.reading != nil && w.last.reading.status.State == datapath.Wrong
}

func (w *watch) read(ctx context.Context) {
	r, err := w.readOnce(ctx)
	if err == nil && r.status.State == datapath.Wrong && !w.showsWrong() {
		// The hops of a workload that starts disagree for a moment.
		time.Sleep(w.interval)
		if again, failed := w.readOnce(ctx); failed == nil {
			r = again
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		w.last = state{reading: r}
	case w.last.err == nil:
		w.last.err, w.last.since = err, w.now()
	default:
		w.last.err = err
	}
	w.ended = w.now()
	close(w.underway)
	w.underway = nil
}

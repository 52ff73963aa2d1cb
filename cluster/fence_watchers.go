package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	config "github.com/fairlead-io/fairlead/api/config/v1alpha1"
	"github.com/fairlead-io/fairlead/fence"
	"github.com/fairlead-io/fairlead/fence/watchers"
)

// Bounds of what is asked of a storage system at a time: it may itself be in
// trouble, and fencing waits for the answers.
const (
	maxWatched   = 16
	watchTimeout = 10 * time.Second
	// silence is how long a storage system is not asked again that has not answered.
	silence = 30 * time.Second
)

// Watchers asks storage systems who has a volume open.
type Watchers struct {
	runners map[string]Runner
	now     func() time.Time

	mu sync.Mutex
	// silent are profiles whose commands have failed, and when.
	silent map[string]time.Time
	// remembered is what was found out for the ledger.
	remembered map[ledgerKey]remembered
	// servers are what was last found out of each kind.
	servers map[serverKind][]netip.Addr
}

// NewWatchers asks by one runner for each profile that is to be asked.
func NewWatchers(runners map[string]Runner, now func() time.Time) *Watchers {
	return &Watchers{runners: runners, now: now, silent: map[string]time.Time{}, remembered: map[ledgerKey]remembered{}, servers: map[serverKind][]netip.Addr{}}
}

// Any tells whether anybody is to be asked.
func (w *Watchers) Any() bool { return w != nil && len(w.runners) > 0 }

var errSilent = errors.New("it has not answered a moment ago")

// addresses of all who have each of the volumes open. What can't be found out is
// an error, and the volume is not in the result: no answer is not "nobody".
func (w *Watchers) addresses(ctx context.Context, p config.FencingProfile, volumes []fence.Volume) (map[string][]netip.Addr, error) {
	runner, ok := w.runners[p.Name]
	if !ok || len(volumes) == 0 {
		return nil, nil
	}
	if !w.answers(p.Name) {
		return nil, fmt.Errorf("asking %s for watchers: %w", p.Name, errSilent)
	}
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	found := map[string][]netip.Addr{}
	var problems []error
	ask := cephClients{runner: runner}
	for _, v := range volumes {
		addresses, err := ask.of(ctx, v)
		if err != nil {
			problems = append(problems, fmt.Errorf("who has volume %s open: %w", v.Name, err))
			continue
		}
		found[v.Name] = addresses
	}
	w.note(p.Name, len(problems) > 0 && len(found) == 0)
	return found, errors.Join(problems...)
}

func (w *Watchers) answers(profile string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	since, silent := w.silent[profile]
	return !silent || w.now().Sub(since) > silence
}

func (w *Watchers) note(profile string, silent bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if silent {
		w.silent[profile] = w.now()
	} else {
		delete(w.silent, profile)
	}
}

// cephClients asks Ceph for the clients of volumes; for those of file systems once.
type cephClients struct {
	runner Runner
	asked  bool
	err    error
	mdss   watchers.MDSMap
	told   watchers.CephFSClients
}

func (c *cephClients) of(ctx context.Context, v fence.Volume) ([]netip.Addr, error) {
	if strings.HasSuffix(v.Driver, "cephfs.csi.ceph.com") {
		return c.ofDirectory(ctx, v)
	}
	image, err := watchers.RBDImageOf(v.Handle, v.Attributes)
	if err != nil {
		return nil, err
	}
	args, err := image.StatusArgs()
	if err != nil {
		return nil, err
	}
	output, err := c.runner.Run(ctx, "rbd", args...)
	if err != nil {
		return nil, err
	}
	found, err := watchers.ParseRBDStatus(output)
	return watchers.RBDAddresses(found), err
}

func (c *cephClients) ofDirectory(ctx context.Context, v fence.Volume) ([]netip.Addr, error) {
	volume, err := watchers.CephFSVolumeOf(v.Attributes)
	if err != nil {
		return nil, err
	}
	if !c.asked {
		c.asked = true
		c.err = c.ask(ctx)
	}
	if c.err != nil {
		return nil, c.err
	}
	sessions, err := volume.Clients(c.mdss, c.told)
	return watchers.Addresses(sessions), err
}

func (c *cephClients) ask(ctx context.Context) error {
	output, err := c.runner.Run(ctx, "ceph", watchers.MDSStatArgs()...)
	if err != nil {
		return err
	}
	if c.mdss, err = watchers.ParseMDSStat(output); err != nil {
		return err
	}
	// It fails where one of many has not answered; who has is in the answer.
	output, failed := c.runner.Run(ctx, "ceph", watchers.AllClientsArgs()...)
	if c.told, err = watchers.ParseClientLs(output); err != nil {
		return errors.Join(failed, err)
	}
	return nil
}

// Watching is what storage systems say of the clients of volumes that only this
// node has, and of shared ones, where the configuration asks for it. They are asked
// for their servers too, which are known from then on. An error is no verdict: what
// was not found out is not checked.
func (r *FenceReader) Watching(ctx context.Context, w *Watchers, v *FenceView) ([]fence.Watching, error) {
	held := slices.Concat(v.Facts.Status.Volumes, v.Facts.Holding)
	byProfile, err := r.telling(ctx, v, fence.Volume.Shared, fence.VolumeNames(held)...)
	if err != nil {
		return nil, err
	}
	var watching []fence.Watching
	var problems []error
	for _, p := range r.profiles() {
		asked, unasked := reached(p, byProfile[p.Name])
		problems = append(problems, unasked)
		volumes := spread(asked, maxWatched)
		found, err := w.addresses(ctx, p, volumes)
		problems = append(problems, err, w.askServers(ctx, p))
		for _, volume := range volumes {
			if addresses, answered := found[volume.Name]; answered {
				watching = append(watching, fence.Watching{Volume: volume.Held(), Addresses: addresses})
			}
		}
	}
	return watching, errors.Join(problems...)
}

var errOtherCluster = errors.New("the profile's commands do not ask the storage cluster that it is of")

// reached are the volumes of the storage cluster that a profile's commands ask: Rook
// names a cluster after its namespace. Another may have an image of the same name,
// which somebody else has open.
func reached(p config.FencingProfile, volumes []fence.Volume) (asked []fence.Volume, unasked error) {
	var problems []error
	others := map[string]bool{}
	for _, v := range volumes {
		if v.ClusterID == p.Namespace {
			asked = append(asked, v)
		} else if !others[v.ClusterID] { // each is told once: its volumes may be many
			others[v.ClusterID] = true
			problems = append(problems, fmt.Errorf("who has volumes of cluster %q open, as %s: %w", v.ClusterID, v.Name, errOtherCluster))
		}
	}
	return asked, errors.Join(problems...)
}

// exclusive are the volumes, by profile, that may be written to from this node
// only: nobody else has them, and nobody else had.
func (r *FenceReader) exclusive(ctx context.Context, v *FenceView, which func(fence.Volume) bool, volumes ...string) (map[string][]fence.Volume, error) {
	byProfile, err := r.telling(ctx, v, func(fence.Volume) bool { return false }, volumes...)
	for p := range byProfile {
		byProfile[p] = slices.DeleteFunc(byProfile[p], func(volume fence.Volume) bool { return !which(volume) })
	}
	return byProfile, err
}

// telling are the volumes, by profile, whose clients tell something of this node:
// those that may be written to from it only, and others for which also says so.
func (r *FenceReader) telling(ctx context.Context, v *FenceView, also func(fence.Volume) bool, volumes ...string) (map[string][]fence.Volume, error) {
	elsewhere, err := r.elsewhere(ctx, v.Facts.Node.Name)
	if err != nil {
		return nil, err
	}
	slices.Sort(volumes)
	found := map[string]fence.Volume{}
	byProfile := map[string][]fence.Volume{}
	for _, name := range slices.Compact(volumes) {
		if err := r.findVolume(ctx, name, found); err != nil {
			return nil, err
		}
		volume := found[name]
		if p, protected := r.profile(volume.Driver); protected && p.Watchers != config.WatchersOff && !volume.ReadOnly() && (also(volume) || !volume.Shared() && !elsewhere[name]) {
			byProfile[p.Name] = append(byProfile[p.Name], volume)
		}
	}
	return byProfile, nil
}

// spread takes some volumes of each identity in turn.
func spread(volumes []fence.Volume, most int) []fence.Volume {
	var order []identityKey
	queues := map[identityKey][]fence.Volume{}
	for _, v := range volumes {
		id := identityKey{v.Driver, v.ClusterID}
		if queues[id] == nil {
			order = append(order, id)
		}
		queues[id] = append(queues[id], v)
	}
	var some []fence.Volume
	for len(some) < min(most, len(volumes)) {
		for _, id := range order {
			if queue := queues[id]; len(queue) > 0 && len(some) < most {
				some, queues[id] = append(some, queue[0]), queue[1:]
			}
		}
	}
	return some
}

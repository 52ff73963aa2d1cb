package fencingreads

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
)

// HolderReader reads the holders of volumes, for the gates of fencing. Its watches only name the nodes that may hold a
// volume, since the API server has no such index. The state of each node is read live.
type HolderReader struct {
	live client.Reader
	Held *Holdings
	// all reads all nodes and records, and nodes only the nodes.
	all   *lists.Shared[map[string]*fence.Namesakes]
	nodes *lists.Shared[[]fence.Node]
}

// ErrNotSynced: which nodes may hold a volume is not known yet.
var ErrNotSynced = errors.New("not yet listed: all Nodes, NodeFences and VolumeAttachments")

// NewHolderReader returns a reader of holdings, which their Start follows.
func NewHolderReader(live client.Reader, held *Holdings) *HolderReader {
	r := &HolderReader{live: live, Held: held}
	r.all, r.nodes = lists.NewShared(r.machines), lists.NewShared(r.listNodes)
	return r
}

const (
	// atOnce is how many nodes are read at a time.
	atOnce = 8
	// each is the largest number of holders that are read one by one. A shared volume may be on hundreds of nodes: two
	// requests for each would exceed the timeout of an admission.
	each = 16
	// share: all nodes are listed if the holders are at least one in share of them.
	share = 8
)

// Holders reads the machines that have or had a volume.
func (r *HolderReader) Holders(ctx context.Context, v fence.Volume) ([]fence.Holder, error) {
	if !r.Held.Synced() {
		return nil, ErrNotSynced
	}
	candidates := r.Held.traces(v)
	var names map[string]map[string]bool
	asked, both := errgroup.WithContext(ctx)
	asked.Go(func() (err error) {
		names, err = r.holderNames(both, v, candidates)
		return err
	})
	var quiet map[string]bool
	if len(candidates) > each && v.HasManyWriters() {
		asked.Go(func() (err error) {
			quiet, err = r.quiet(both)
			return err
		})
	}
	if err := asked.Wait(); err != nil {
		return nil, err
	}
	exclusive := r.Held.exclusiveOn(v)
	maps.DeleteFunc(names, func(name string, incidents map[string]bool) bool {
		return len(incidents) == 0 && quiet[name] && !exclusive[name]
	})
	if len(names) > each && len(names)*share >= r.Held.nodes() {
		return r.listed(ctx, v, names)
	}
	holders := make([][]fence.Holder, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	i := 0
	for name, records := range names {
		n := i
		group.Go(func() (err error) {
			holders[n], err = r.holdersOf(ctx, v, name, records)
			return err
		})
		i++
	}
	err := group.Wait()
	return sortedHolders(slices.Concat(holders...)), err
}

func sortedHolders(holders []fence.Holder) []fence.Holder {
	slices.SortStableFunc(holders, func(a, b fence.Holder) int {
		return cmp.Or(cmp.Compare(a.Node.Name, b.Node.Name), cmp.Compare(a.Record, b.Record))
	})
	return holders
}

// holderNames names the nodes that may have or had a volume, each with its records that are in an incident.
func (r *HolderReader) holderNames(ctx context.Context, v fence.Volume, candidates []*shown) (map[string]map[string]bool, error) {
	names := map[string]map[string]bool{}
	add := func(node string, records ...string) {
		if names[node] == nil {
			names[node] = map[string]bool{}
		}
		for _, record := range records {
			names[node][record] = true
		}
	}
	for _, t := range candidates {
		add(t.node)
	}
	// Watches may lack the latest writes. Records in an incident are few, so they are read live.
	lost, err := recordsInIncident(ctx, r.live)
	if err != nil {
		return nil, err
	}
	for i := range lost {
		node := lost[i].Spec.NodeName
		if names[node] != nil || slices.ContainsFunc(lost[i].Spec.Volumes, func(h v1alpha1.HeldVolume) bool { return fence.SameVolume(h, v.Held()) }) {
			add(node, lost[i].Name)
		}
	}
	return names, nil
}

// manyNodes change so often that waiting for a change takes no longer than listing all nodes: each kubelet writes the
// status every five minutes.
const manyNodes = 2000

// quiet are the nodes that keep no volume with many writers from other nodes: they exist without taint, in the boot of their only
// record, which is in no incident. That a record is in one is read live by its label, and its boot never changes.
func (r *HolderReader) quiet(ctx context.Context) (map[string]bool, error) {
	if r.Held.nodes() >= manyNodes {
		if caughtUp, err := NodesVersion(r.Held.nodesVersion).caughtUp(ctx, r.live); err != nil || caughtUp {
			return r.Held.quiet(nil), err
		}
	}
	nodes, err := r.nodes.Get(ctx)
	return r.Held.quiet(nodes), err
}

// Present reads the machine that has a node name now, and its record.
func (r *HolderReader) Present(ctx context.Context, name string) (fence.Node, fence.Record, error) {
	sakes, err := r.namesakes(ctx, name, nil)
	record, _ := sakes.Present()
	return sakes.Node, record, err
}

// HoldersOf reads the machines of one node name that have or had a volume.
func (r *HolderReader) HoldersOf(ctx context.Context, v fence.Volume, name string) ([]fence.Holder, error) {
	return r.holdersOf(ctx, v, name, nil)
}

func (r *HolderReader) holdersOf(ctx context.Context, v fence.Volume, name string, records map[string]bool) ([]fence.Holder, error) {
	sakes, err := r.namesakes(ctx, name, records)
	if err != nil {
		return nil, err
	}
	return r.holders(&sakes, v), nil
}

// holders of one node name. Of a Node that is gone, only attachments show its volumes.
func (r *HolderReader) holders(sakes *fence.Namesakes, v fence.Volume) []fence.Holder {
	if !sakes.Node.Exists && r.Held.isAttached(v, sakes.Node.Name) {
		shown := *sakes // it is shared
		shown.Shown = []v1alpha1.HeldVolume{v.Held()}
		return shown.Holders(v)
	}
	return sakes.Holders(v)
}

// namesakes reads a node and its records: the record with the node's name, those that the watches name, and the given ones.
func (r *HolderReader) namesakes(ctx context.Context, name string, more map[string]bool) (fence.Namesakes, error) {
	sakes := fence.Namesakes{Node: fence.Node{Name: name}}
	if !r.Held.Synced() {
		return sakes, ErrNotSynced
	}
	var node corev1.Node
	if there, err := get(ctx, r.live, name, &node); err != nil {
		return sakes, err
	} else if there { // the record of its boot is read even if the watches have not shown it yet
		sakes.Node, more = FenceNode(&node), maps.Clone(more)
		if more == nil {
			more = map[string]bool{}
		}
		more[fence.RecordName(name, sakes.Node.Boot)] = true
	}
	_, err := r.Held.readRecords(ctx, r.live, &sakes, more)
	return sakes, err
}

// listed lists all nodes and records, and returns the holders among the names.
func (r *HolderReader) listed(ctx context.Context, v fence.Volume, names map[string]map[string]bool) ([]fence.Holder, error) {
	all, err := r.all.Get(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the machines that may hold volume %s: %w", v.Name, err)
	}
	var holders []fence.Holder
	for name := range names {
		sakes := all[name]
		if sakes == nil {
			sakes = &fence.Namesakes{Node: fence.Node{Name: name}}
		}
		holders = append(holders, r.holders(sakes, v)...)
	}
	return sortedHolders(holders), nil
}

// machines reads all nodes and records page by page, so that no whole list is in memory.
func (r *HolderReader) machines(ctx context.Context) (map[string]*fence.Namesakes, error) {
	nodes, err := r.listNodes(ctx)
	if err != nil {
		return nil, err
	}
	var records []fence.Record
	err = lists.ForEach(ctx, lists.NewLive(r.live), &v1alpha1.NodeFenceList{}, func(n *v1alpha1.NodeFence) { records = append(records, FenceRecord(n)) })
	if err != nil {
		return nil, fmt.Errorf("listing NodeFences: %w", err)
	}
	return fence.ByName(nodes, records), nil
}

func (r *HolderReader) listNodes(ctx context.Context) (nodes []fence.Node, err error) {
	err = lists.ForEach(ctx, lists.NewLive(r.live), &corev1.NodeList{}, func(n *corev1.Node) { nodes = append(nodes, FenceNode(n)) })
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	return nodes, nil
}

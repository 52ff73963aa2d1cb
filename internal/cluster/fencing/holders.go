package fencing

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/lists"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// HolderReader gathers what the gates of fencing judge by. Which nodes may hold a
// volume is looked up in caches, since nothing else can be asked for it; what is
// believed of each of them is read live.
type HolderReader struct {
	live       client.Reader
	candidates candidates
	// holdings are the candidates where the reader has watches of its own; else nil.
	holdings *holdings
	watches  []*watched
	// heavy has a place for each that reads all nodes.
	heavy *semaphore.Weighted
}

// NewHolderReader returns a reader over the API server and a cache with the indexes of HolderIndexes.
// Over a Live one it reads whole objects, and takes turns with the other reviews.
func NewHolderReader(live, cached client.Reader) *HolderReader {
	return newHolderReader(live, cachedCandidates{cached})
}

func newHolderReader(live client.Reader, candidates candidates) *HolderReader {
	if live, ok := live.(*lists.Live); ok {
		return &HolderReader{live: live.Reader, candidates: candidates, heavy: live.Turns}
	}
	return &HolderReader{live: live, candidates: candidates, heavy: semaphore.NewWeighted(lists.HeavyAtOnce)}
}

const (
	// atOnce is how many nodes are read at a time.
	atOnce = 8
	// each, and no more, of a volume's holders are read one by one. Where a shared volume
	// is on hundreds of nodes, two requests for each would take longer than an admission may.
	each = 16
	// share of all nodes, as one in so many, that is worth reading all of them at once.
	share = 8
)

// Holders are the machines that have or had a volume, each as it is now.
func (r *HolderReader) Holders(ctx context.Context, v fence.Volume) ([]fence.Holder, error) {
	candidates, err := r.candidates.holders(ctx, v)
	if err != nil {
		return nil, err
	}
	var names map[string]map[string]bool
	asked, both := errgroup.WithContext(ctx)
	asked.Go(func() (err error) {
		names, err = r.holderNames(both, v, candidates)
		return err
	})
	caughtUp := false
	if len(candidates) > each && r.watchesMany() && v.HasManyWriters() {
		asked.Go(func() (err error) {
			caughtUp, err = NodesVersion(r.holdings.nodesVersion).caughtUp(both, r.live)
			return err
		})
	}
	if err := asked.Wait(); err != nil {
		return nil, err
	}
	if caughtUp {
		r.leaveOutQuiet(names)
	}
	if len(names) > each {
		known, err := r.candidates.nodes(ctx)
		if err != nil {
			return nil, err
		}
		if len(names)*share >= known {
			return r.listed(ctx, v, names)
		}
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
	err = group.Wait()
	return sortedHolders(slices.Concat(holders...)), err
}

func sortedHolders(holders []fence.Holder) []fence.Holder {
	slices.SortStableFunc(holders, func(a, b fence.Holder) int {
		return cmp.Or(cmp.Compare(a.Node.Name, b.Node.Name), cmp.Compare(a.Record, b.Record))
	})
	return holders
}

// holderNames are the names of nodes that may have or had a volume, and of the records of each that are in an incident.
func (r *HolderReader) holderNames(ctx context.Context, v fence.Volume, candidates []string) (map[string]map[string]bool, error) {
	names := map[string]map[string]bool{}
	add := func(node string, records ...string) {
		if names[node] == nil {
			names[node] = map[string]bool{}
		}
		for _, record := range records {
			names[node][record] = true
		}
	}
	for _, name := range candidates {
		add(name)
	}
	// What was written a moment ago may not be in the caches; those in an incident are few.
	lost, err := r.unhealthy(ctx)
	if err != nil {
		return nil, err
	}
	for i := range lost {
		node := NodeOfFence(&lost[i])
		if names[node] != nil || slices.ContainsFunc(lost[i].Status.Volumes, func(h v1alpha1.HeldVolume) bool { return h.PersistentVolume == v.Name }) {
			add(node, lost[i].Name)
		}
	}
	return names, nil
}

// manyNodes, of which each kubelet writes the status every five minutes, change so often that
// waiting for a change takes no longer than reading all of them.
const manyNodes = 1000

// watchesMany tells whether the reader has a watch of Nodes with a change every few hundred milliseconds.
func (r *HolderReader) watchesMany() bool {
	if r.holdings == nil {
		return false
	}
	known, err := r.holdings.nodes(context.Background())
	return err == nil && known >= manyNodes
}

// leaveOutQuiet takes away the names of nodes that keep nobody from a volume with many writers: nodes that are there,
// without taint, and whose records are Healthy.
func (r *HolderReader) leaveOutQuiet(names map[string]map[string]bool) {
	maps.DeleteFunc(names, func(name string, incidents map[string]bool) bool {
		return len(incidents) == 0 && r.holdings.isQuiet(name)
	})
}

// unhealthy NodeFences, live.
func (r *HolderReader) unhealthy(ctx context.Context) ([]v1alpha1.NodeFence, error) {
	notHealthy, err := labels.NewRequirement(fence.PhaseLabel, selection.NotIn, []string{string(v1alpha1.NodeHealthy)})
	if err != nil {
		return nil, fmt.Errorf("selecting NodeFences: %w", err)
	}
	exists, err := labels.NewRequirement(fence.PhaseLabel, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("selecting NodeFences: %w", err)
	}
	var list v1alpha1.NodeFenceList
	if err := r.live.List(ctx, &list, client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*exists, *notHealthy)}); err != nil {
		return nil, fmt.Errorf("listing NodeFences that are not Healthy: %w", err)
	}
	return list.Items, nil
}

// Present reads the machine that is a node now, and what is on record of it.
func (r *HolderReader) Present(ctx context.Context, name string) (fence.Node, fence.Record, error) {
	sakes, _, err := r.namesakes(ctx, name, nil, "")
	if err != nil {
		return fence.Node{}, fence.Record{}, err
	}
	record, _ := sakes.Present()
	return sakes.Node, record, nil
}

// HoldersOf reads all machines of one node's name that have or had a volume, which is on record or shown under that.
func (r *HolderReader) HoldersOf(ctx context.Context, v fence.Volume, name string) ([]fence.Holder, error) {
	return r.holdersOf(ctx, v, name, nil)
}

func (r *HolderReader) holdersOf(ctx context.Context, v fence.Volume, name string, records map[string]bool) ([]fence.Holder, error) {
	sakes, inUse, err := r.namesakes(ctx, name, records, fence.UniqueName(v.Driver, v.Handle))
	if err != nil {
		return nil, err
	}
	return sakes.Holders(v, inUse), nil
}

// namesakes reads a node and its records: the one of the node's name, those that are known to be of it, and those named.
// Volume is a unique name.
func (r *HolderReader) namesakes(ctx context.Context, name string, records map[string]bool, volume string) (sakes fence.Namesakes, inUse bool, err error) {
	sakes.Node = fence.Node{Name: name}
	var node corev1.Node
	if there, err := get(ctx, r.live, name, &node); err != nil {
		return sakes, false, err
	} else if there {
		sakes.Node, inUse = FenceNode(&node), usesVolume(&node, volume)
	}
	known := map[string]bool{name: true}
	maps.Copy(known, records)
	cached, err := r.candidates.recordsOf(ctx, name)
	if err != nil {
		return sakes, false, err
	}
	for _, record := range cached {
		known[record] = true
	}
	for _, record := range slices.Sorted(maps.Keys(known)) {
		var read v1alpha1.NodeFence
		if there, err := get(ctx, r.live, record, &read); err != nil {
			return sakes, false, err
		} else if there && NodeOfFence(&read) == name {
			sakes.Records = append(sakes.Records, FenceRecord(&read))
		}
	}
	return sakes, inUse, nil
}

func usesVolume(node *corev1.Node, volume string) bool {
	return slices.Contains(node.Status.VolumesInUse, corev1.UniqueVolumeName(volume))
}

// listed reads all nodes and records, and returns those of some names.
func (r *HolderReader) listed(ctx context.Context, v fence.Volume, names map[string]map[string]bool) ([]fence.Holder, error) {
	if err := r.heavy.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("waiting to read who may hold volume %s: %w", v.Name, err)
	}
	defer r.heavy.Release(1)
	of, inUse := map[string]*fence.Namesakes{}, map[string]bool{}
	for name := range names {
		of[name] = &fence.Namesakes{Node: fence.Node{Name: name}}
	}
	var nodes corev1.NodeList
	err := lists.EachPage(ctx, r.live, &nodes, func() error {
		for i := range nodes.Items {
			if sakes := of[nodes.Items[i].Name]; sakes != nil {
				sakes.Node, inUse[nodes.Items[i].Name] = FenceNode(&nodes.Items[i]), usesVolume(&nodes.Items[i], fence.UniqueName(v.Driver, v.Handle))
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the nodes that may hold volume %s: %w", v.Name, err)
	}
	var records v1alpha1.NodeFenceList
	err = lists.EachPage(ctx, r.live, &records, func() error {
		for i := range records.Items {
			if sakes := of[NodeOfFence(&records.Items[i])]; sakes != nil {
				sakes.Records = append(sakes.Records, FenceRecord(&records.Items[i]))
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the NodeFences that may hold volume %s: %w", v.Name, err)
	}
	var holders []fence.Holder
	for name, sakes := range of {
		holders = append(holders, sakes.Holders(v, inUse[name])...)
	}
	return sortedHolders(holders), nil
}

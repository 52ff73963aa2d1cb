package fencing

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/lists"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// snapshot is what all decisions of an incident share. It costs the same few requests for one lost node and for a hundred.
type snapshot struct {
	// records by name, and their names by node.
	records map[string]*v1alpha1.NodeFence
	ofNode  map[string][]string
	// attached are the attachments of the nodes to decide on.
	attached map[string][]attachedVolume
	nodes    map[string]*corev1.Node
	// machines, and the storage's pods, are what a fence could hurt.
	machines []fence.Other
	pods     *podsAround
	// fences are all NetworkFences. noCSIAddons: their kind is not installed.
	fences      []fence.NetworkFence
	noCSIAddons bool
}

// Snapshot returns a reader for decisions that may do harm. Its views, of the named nodes only, are as new as live reads but for:
//   - VolumeAttachments. The kubelet writes a volume to the Node before it mounts it, and Nodes are read after the
//     attachments. A stale attachment only holds its volume for longer. See attachedAndNode for the exceptions.
//   - Addresses of a Ready node from csi-addons and pods: they are as old as the last report in any case.
//   - Records of healthy machines. Records are read first: if a write of a record meets no conflict, all else was newer.
func (r *FenceReader) Snapshot(ctx context.Context, names []string) (*FenceReader, error) {
	if !r.held.Synced() {
		return nil, ErrNotSynced
	}
	s := &snapshot{attached: map[string][]attachedVolume{}, records: map[string]*v1alpha1.NodeFence{}, ofNode: map[string][]string{}, nodes: map[string]*corev1.Node{}}
	records, err := r.recordsNow(ctx)
	if err != nil {
		return nil, err
	}
	for i := range records {
		record := &records[i]
		s.records[record.Name] = record
		s.ofNode[NodeOfFence(record)] = append(s.ofNode[NodeOfFence(record)], record.Name)
	}
	for _, name := range names {
		s.attached[name] = r.held.attachedTo(name)
	}
	nodes, err := r.nodesNow(ctx)
	if err != nil {
		return nil, err
	}
	for i := range nodes {
		s.nodes[nodes[i].Name] = &nodes[i]
	}
	if slices.ContainsFunc(names, s.isMissing) {
		// No volumesInUse is left to check stale attachments against. A deleted node gets no new ones, so one live read is enough.
		now, err := r.attachmentsNow(ctx)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if s.isMissing(name) {
				s.attached[name] = now[name]
			}
		}
	}
	if s.fences, s.noCSIAddons, err = r.networkFences(ctx, r.live); err != nil {
		return nil, err
	}
	if s.pods, err = r.podsNow(ctx); err != nil {
		return nil, err
	}
	s.machines = machinesOf(nodes, records, s.pods.clients)
	now := *r
	now.snapshot = s
	return &now, nil
}

// isMissing reports whether a node has no Node, and no record says so yet.
func (s *snapshot) isMissing(name string) bool {
	var newest *v1alpha1.NodeFence
	for _, record := range s.ofNode[name] {
		if r := s.records[record]; newest == nil || r.Status.Ordinal > newest.Status.Ordinal {
			newest = r
		}
	}
	return s.nodes[name] == nil && (newest == nil || !newest.Status.Gone)
}

// Get implements getter for Nodes and NodeFences.
func (s *snapshot) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch into := into.(type) {
	case *corev1.Node:
		if node := s.nodes[key.Name]; node != nil {
			*into = *node
			return nil
		}
	case *v1alpha1.NodeFence:
		if record := s.records[key.Name]; record != nil {
			*into = *record
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", into)}, key.Name)
}

// recordsNow reads all records: those in an incident live, since they keep addresses blocked. Those of healthy machines may be
// stale: their addresses are minutes old in any case.
func (r *FenceReader) recordsNow(ctx context.Context) ([]v1alpha1.NodeFence, error) {
	all, err := recordsInIncident(ctx, r.live)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for i := range all {
		known[all[i].Name] = true
	}
	cached, err := r.cachedRecords(ctx)
	if err != nil {
		return nil, err
	}
	for i := range cached {
		n := &cached[i]
		switch {
		case known[n.Name]:
		case settled(n):
			all = append(all, *n)
		default:
			var now v1alpha1.NodeFence
			if there, err := get(ctx, r.live, n.Name, &now); err != nil {
				return nil, err
			} else if there {
				all = append(all, now)
			}
		}
	}
	return all, nil
}

func (r *FenceReader) cachedRecords(ctx context.Context) ([]v1alpha1.NodeFence, error) {
	var list v1alpha1.NodeFenceList
	if err := r.objects.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing NodeFences: %w", err)
	}
	return list.Items, nil
}

// settled: the record is of a healthy machine, and says so also to who reads labels only.
func settled(n *v1alpha1.NodeFence) bool {
	return !fence.Keep(n.Status) && n.Labels[fence.PhaseLabel] == string(v1alpha1.NodeHealthy)
}

func (r *FenceReader) cachedNodes(ctx context.Context) ([]corev1.Node, error) {
	var list corev1.NodeList
	if err := r.objects.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	return list.Items, nil
}

// nodesNow are the Nodes as the API server has them. A small cluster is listed. In a large cluster the cache may catch up; if it
// does not in time, all Nodes are listed.
func (r *FenceReader) nodesNow(ctx context.Context) ([]corev1.Node, error) {
	cached, err := r.cachedNodes(ctx)
	if err != nil || r.nodesVersion == nil {
		return cached, err
	}
	if len(cached) <= lists.LargePage {
		var all corev1.NodeList
		if err := r.live.List(ctx, &all, client.Limit(lists.LargePage)); err != nil {
			return nil, fmt.Errorf("listing nodes: %w", err)
		} else if all.Continue == "" {
			return all.Items, nil
		}
	}
	if there, err := r.nodesVersion.caughtUp(ctx, r.live); err != nil {
		return nil, err
	} else if there {
		return r.cachedNodes(ctx)
	}
	var all corev1.NodeList
	if err := lists.NewLive(r.live).List(ctx, &all); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	return all.Items, nil
}

// recordsOf reads the records of all machines that have or had a node's name, the earliest first.
func (r *FenceReader) recordsOf(ctx context.Context, name string, sakes *fence.Namesakes) (records []v1alpha1.NodeFence, err error) {
	var more []string
	if r.snapshot != nil {
		more = r.snapshot.ofNode[name]
	}
	if records, sakes.Taken, err = r.held.readRecords(ctx, r.read(), name, more); err != nil {
		return nil, err
	}
	slices.SortFunc(records, func(a, b v1alpha1.NodeFence) int {
		return cmp.Or(cmp.Compare(a.Status.Ordinal, b.Status.Ordinal), cmp.Compare(a.Name, b.Name))
	})
	for i := range records {
		sakes.Records = append(sakes.Records, FenceRecord(&records[i]))
	}
	return records, nil
}

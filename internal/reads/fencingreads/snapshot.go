package fencingreads

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
)

// snapshot is what all decisions of a moment share: what a fence could hurt. It costs the same few requests for one lost node and for
// a hundred.
type snapshot struct {
	// records by node name.
	records map[string][]*v1alpha1.NodeFence
	// nodes by name.
	nodes map[string]*corev1.Node
	// machines, and the storage's pods, are what a fence could hurt. selfFencing are pods of drivers that fence by themselves, by profile.
	machines    []fence.Other
	servers     []fence.Server
	selfFencing map[string]string
	// fences are all NetworkFences. noCSIAddons: their kind is not installed.
	fences      []fence.NetworkFence
	noCSIAddons bool
	// number of the snapshot, by taken.
	number int64
}

// Live returns a reader for decisions that may do harm. What concerns one node is read when its view is. What concerns all is read at
// once for all who ask meanwhile, after they have asked: records, Nodes, NetworkFences and the storage's pods. All of it is as new as a live read but for:
//   - VolumeAttachments. The kubelet writes a volume to the Node before it mounts it, and the Node is read after the
//     attachments. A stale attachment only holds its volume for longer. See attachedAndNode for the exceptions.
//   - Addresses of a Ready node from csi-addons and pods: they are as old as the last report in any case.
//   - Records of healthy machines. Records are read first: if a write of a record meets no conflict, all else was newer.
func (r *FenceReader) Live(ctx context.Context) (*FenceReader, error) {
	if !r.held.Synced() {
		return nil, ErrNotSynced
	}
	s, err := r.shared.Get(ctx)
	if err != nil {
		return nil, err
	}
	now := *r
	now.snapshot = s
	return &now, nil
}

func (r *FenceReader) readSnapshot(ctx context.Context) (*snapshot, error) {
	s := &snapshot{records: map[string][]*v1alpha1.NodeFence{}, nodes: map[string]*corev1.Node{}, number: r.taken.begin()}
	records, err := r.recordsNow(ctx)
	if err != nil {
		return nil, err
	}
	recorded := make([]fence.Record, len(records))
	for i := range records {
		name := records[i].Spec.NodeName
		s.records[name], recorded[i] = append(s.records[name], &records[i]), FenceRecord(&records[i])
	}
	nodes, err := r.nodesNow(ctx)
	if err != nil {
		return nil, err
	}
	present := make([]fence.Node, len(nodes))
	for i := range nodes {
		s.nodes[nodes[i].Name], present[i] = &nodes[i], FenceNode(&nodes[i])
	}
	if s.fences, s.noCSIAddons, err = r.networkFences(ctx, r.live); err != nil {
		return nil, err
	}
	s.machines = fence.Machines(fence.ByName(present, recorded))
	return s, r.addPods(ctx, s, lists.NewLive(r.live))
}

// Take the addresses for a node, until done is called; false if what was decided about one of them for another node may not be in the
// snapshot.
func (r *FenceReader) Take(node string, addresses []string) (done func(), ok bool) {
	return r.taken.take(r.snapshot.number, node, addresses)
}

// recordsNow reads all records: those in an incident live, since they keep addresses blocked. Those of healthy machines may be
// stale: their addresses are minutes old in any case.
func (r *FenceReader) recordsNow(ctx context.Context) ([]v1alpha1.NodeFence, error) {
	records, err := recordsInIncident(ctx, r.live)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for i := range records {
		known[records[i].Name] = true
	}
	cached, err := readAll(ctx, r.objects, &v1alpha1.NodeFenceList{})
	if err != nil {
		return nil, err
	}
	for i := range cached.Items {
		n := &cached.Items[i]
		switch {
		case known[n.Name]:
		case settled(n):
			records = append(records, *n)
		default:
			var now v1alpha1.NodeFence
			if there, err := get(ctx, r.live, n.Name, &now); err != nil {
				return nil, err
			} else if there {
				records = append(records, now)
			}
		}
	}
	return records, nil
}

// settled: the record is of a healthy machine, and says so also to who reads labels only.
func settled(n *v1alpha1.NodeFence) bool {
	return !fence.InIncident(n.Spec) && n.Labels[fence.IncidentLabel] == ""
}

// nodesNow are the Nodes as the API server has them. A small cluster is listed. In a large cluster the cache may catch up; if it
// does not in time, all Nodes are listed.
func (r *FenceReader) nodesNow(ctx context.Context) ([]corev1.Node, error) {
	from := r.objects
	cached, err := readAll(ctx, from, &corev1.NodeList{})
	if err != nil || r.nodesVersion == nil {
		return cached.Items, err
	}
	there := false
	if len(cached.Items) > lists.LargePage {
		if there, err = r.nodesVersion.caughtUp(ctx, r.live); err != nil {
			return nil, err
		}
	}
	if !there {
		from = lists.NewLive(r.live)
	}
	now, err := readAll(ctx, from, &corev1.NodeList{})
	return now.Items, err
}

// recordsOf reads the records of all boots that have or had a node's name.
func (r *FenceReader) recordsOf(ctx context.Context, sakes *fence.Namesakes) (records []*v1alpha1.NodeFence, err error) {
	if r.snapshot == nil {
		return r.held.readRecords(ctx, r.objects, sakes, nil)
	}
	records = slices.Clone(r.snapshot.records[sakes.Node.Name])
	slices.SortFunc(records, func(a, b *v1alpha1.NodeFence) int { return strings.Compare(a.Name, b.Name) })
	for _, record := range records {
		sakes.Records = append(sakes.Records, FenceRecord(record))
	}
	return records, nil
}

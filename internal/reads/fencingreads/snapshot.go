package fencingreads

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
)

// snapshot is what all decisions of an incident share. It costs the same few requests for one lost node and for a hundred.
type snapshot struct {
	// named are all machines, by node name. Their objects are in nodes by that name, and in records by their own.
	named   map[string]*fence.Namesakes
	nodes   map[string]*corev1.Node
	records map[string]*v1alpha1.NodeFence
	// attached are the attachments of the nodes to decide on.
	attached map[string][]attachedVolume
	// machines, and the storage's pods, are what a fence could hurt. selfFencing are pods of drivers that fence by themselves, by profile.
	machines    []fence.Other
	servers     []fence.Server
	selfFencing map[string]string
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
	s := &snapshot{attached: map[string][]attachedVolume{}, records: map[string]*v1alpha1.NodeFence{}, nodes: map[string]*corev1.Node{}}
	records, err := r.recordsNow(ctx)
	if err != nil {
		return nil, err
	}
	recorded := make([]fence.Record, len(records))
	for i := range records {
		s.records[records[i].Name], recorded[i] = &records[i], FenceRecord(&records[i])
	}
	for _, name := range names {
		s.attached[name] = r.held.attachedTo(name)
	}
	nodes, err := r.nodesNow(ctx)
	if err != nil {
		return nil, err
	}
	present := make([]fence.Node, len(nodes))
	for i := range nodes {
		s.nodes[nodes[i].Name], present[i] = &nodes[i], FenceNode(&nodes[i])
	}
	s.named = fence.ByName(present, recorded)
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
	s.machines = fence.Machines(s.named)
	if err := r.addPods(ctx, s, lists.NewLive(r.live)); err != nil {
		return nil, err
	}
	now := *r
	now.snapshot = s
	return &now, nil
}

// isMissing reports whether a node has no Node, and no record says so yet.
func (s *snapshot) isMissing(name string) bool {
	sakes := s.named[name]
	if sakes == nil || len(sakes.Records) == 0 {
		return s.nodes[name] == nil
	}
	return s.nodes[name] == nil && !sakes.Records[len(sakes.Records)-1].Status.Gone
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
	return !fence.Keep(n.Status) && n.Labels[fence.PhaseLabel] == string(v1alpha1.NodeHealthy)
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

// recordsOf reads the records of all machines that have or had a node's name, the earliest first.
func (r *FenceReader) recordsOf(ctx context.Context, sakes *fence.Namesakes) (records []*v1alpha1.NodeFence, err error) {
	if r.snapshot == nil {
		return r.held.readRecords(ctx, r.objects, sakes, nil)
	}
	if named := r.snapshot.named[sakes.Node.Name]; named != nil {
		sakes.Records, sakes.Taken = named.Records, named.Taken
	}
	for _, record := range sakes.Records {
		records = append(records, r.snapshot.records[record.Name])
	}
	return records, nil
}

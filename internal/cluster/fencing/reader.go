package fencing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/csiaddons"
	"github.com/fairlead-io/fairlead/internal/cluster/lists"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// FenceReader gathers facts on nodes that may have to be fenced.
type FenceReader struct {
	config config.Fencing
	// objects is a cache, or live: the API server. held has the volumes and attachments.
	objects, live client.Reader
	held          *Holdings
	// decides: where a stale cache could do harm, live is read instead. nodesVersion is set then.
	decides      bool
	nodesVersion NodesVersion
	// shared has the pods that another look has read; nil: each look reads.
	shared *atomic.Pointer[podsAround]
	// indexed: objects has the indexes of IndexFencing. addonsIndexed: it also has that of IndexAddons.
	indexed       bool
	addonsIndexed *atomic.Bool
}

// NewFenceReader reads from objects by the indexes of IndexFencing and cluster.IndexNodes, volumes from holdings with rows, and
// the rest live.
func NewFenceReader(c config.Fencing, objects, live client.Reader, held *Holdings) *FenceReader {
	return &FenceReader{config: c, objects: objects, live: live, held: held, indexed: true, addonsIndexed: &atomic.Bool{}}
}

// NewUncachedReader reads everything live, for commands that end soon.
func NewUncachedReader(ctx context.Context, c config.Fencing, live client.Reader) (*FenceReader, error) {
	held, err := ListedHoldings(ctx, live, c.Protects)
	return &FenceReader{config: c, objects: lists.NewLive(live), live: live, held: held, addonsIndexed: &atomic.Bool{}}, err
}

// Policy of fencing, as configured.
func (r *FenceReader) Policy() fence.Policy { return r.config.Policy() }

// Live is the same reader for decisions that may do harm. It reads live: the node, NetworkFences, the records of machines
// in an incident, and the addresses of all nodes. Other reads may be stale:
//   - VolumeAttachments. The kubelet writes a volume to the Node before it mounts it, and the Node is read after the
//     attachments. A stale attachment only holds its volume for longer. See attachedAndNode for the exceptions.
//   - Addresses of a Ready node from csi-addons and pods: they are as old as the last report in any case.
func (r *FenceReader) Live(nodes NodesVersion) *FenceReader {
	live := *r
	live.decides, live.nodesVersion = true, nodes
	return &live
}

// fresh reads the node itself, NodeFences and NetworkFences.
func (r *FenceReader) fresh() client.Reader {
	if r.decides {
		return r.live
	}
	return r.objects
}

// FenceView is what the cluster shows of one machine.
type FenceView struct {
	Facts fence.Facts
	// Record is nil if the machine has none. Node is nil if no machine or another machine has the name.
	Record *v1alpha1.NodeFence
	Node   *corev1.Node
	// Unattached are the protected drivers that use no attachments; only read for a healthy node.
	Unattached []string
	// Unproved are the CSIAddonsNodes whose report may be of an earlier boot of the node.
	Unproved []*csiaddons.CSIAddonsNode
	// Leaving: the node will soon release some of its volumes.
	Leaving bool
	// Unresolved: the node uses a volume whose PersistentVolume was not found, so the list of its volumes is incomplete.
	Unresolved bool
	// volumes on the node, and its attachments.
	volumes  []fence.Volume
	attached []attachedVolume
	// named: NetworkFences name the node.
	named bool
	// unsettled are the records of all machines in an incident, if read live.
	unsettled []v1alpha1.NodeFence
}

// Views returns one view for each machine that has or had a node name, the earliest first, and a machine without a record
// last. Records are read first: if a write of a record meets no conflict, all other reads were newer than the record.
func (r *FenceReader) Views(ctx context.Context, name string, now time.Time) ([]*FenceView, error) {
	if !r.held.Synced() {
		return nil, ErrNotSynced
	}
	sakes := fence.Namesakes{Node: fence.Node{Name: name}}
	unsettled, err := r.unsettled(ctx)
	if err != nil {
		return nil, err
	}
	records, err := r.recordsOf(ctx, name, &sakes, unsettled)
	if err != nil {
		return nil, err
	}
	policy := r.Policy()
	attached, node, err := r.attachedAndNode(ctx, name, &sakes)
	if err != nil {
		return nil, err
	}
	seen, err := r.seenOn(ctx, &sakes, node, attached)
	if err != nil {
		return nil, err
	}
	views := make([]*FenceView, 0, len(records)+1)
	for i := range records {
		views = append(views, &FenceView{Facts: sakes.Of(i), Record: &records[i]})
	}
	if f, missing := sakes.Missing(policy); missing {
		views = append(views, &FenceView{Facts: f})
	}
	// Healthy nodes need these too: a leader that hung may have created a fence late, a record may be lost, or a fence of
	// another node may block this node.
	fences, noCSIAddons, err := r.networkFences(ctx)
	if err != nil {
		return nil, err
	}
	named := slices.ContainsFunc(fences, func(n fence.NetworkFence) bool { return n.Labels[fence.NodeLabel] == fence.LabelValue(name) })
	for _, v := range views {
		f := &v.Facts
		f.Now, f.Policy, f.Fences, f.NoCSIAddons = now, policy, fences, noCSIAddons
		v.Unresolved, v.named, v.unsettled, v.volumes, v.attached, v.Unattached = seen.unresolved, named, unsettled, seen.volumes, attached, seen.unattached
		if f.Node.Exists {
			v.Node = node
		}
		seen.left(f)
		if f.Node.Ready {
			if f.Ledger, err = r.ledger(ctx, v); err != nil {
				return nil, err
			}
		}
		if v.alone() {
			continue
		}
		if err := r.addOthers(ctx, v); err != nil {
			return nil, err
		}
	}
	return views, nil
}

// AskStorage asks the storage itself about a node that may be fenced. The error names the questions without an answer;
// what they ask is not checked.
type AskStorage func(context.Context, fence.Facts) (fence.Report, error)

// recordsOf reads the records of all machines that have or had a node's name, the earliest first. The first record mostly
// has the node's name.
func (r *FenceReader) recordsOf(ctx context.Context, name string, sakes *fence.Namesakes, unsettled []v1alpha1.NodeFence) (records []v1alpha1.NodeFence, err error) {
	var lost []string
	for i := range unsettled {
		if NodeOfFence(&unsettled[i]) == name {
			lost = append(lost, unsettled[i].Name)
		}
	}
	if records, sakes.Taken, err = r.held.readRecords(ctx, r.fresh(), name, lost); err != nil {
		return nil, err
	}
	slices.SortFunc(records, func(a, b v1alpha1.NodeFence) int {
		return cmp.Or(cmp.Compare(a.Status.Ordinal, b.Status.Ordinal), strings.Compare(a.Name, b.Name))
	})
	for i := range records {
		sakes.Records = append(sakes.Records, FenceRecord(&records[i]))
	}
	return records, nil
}

// NodeOfFence is the node name of a NodeFence's machine.
func NodeOfFence(n *v1alpha1.NodeFence) string {
	return cmp.Or(n.Status.NodeName, n.Labels[fence.NodeLabel], n.Name)
}

// FenceRecord is what fencing reads of a NodeFence.
func FenceRecord(n *v1alpha1.NodeFence) fence.Record {
	r := fence.Record{Name: n.Name, Status: n.Status, Override: fence.ReadOverride(n.Annotations, n.Status)}
	r.Status.NodeName = NodeOfFence(n)
	return r
}

// ErrNodeGone: no Node has the name.
var ErrNodeGone = errors.New("is gone")

// FenceFacts reads all facts of the machine that has a node name now, whether or not it is to be fenced: also what a fence
// could hurt, and the clients of its volumes.
func (r *FenceReader) FenceFacts(c clock.PassiveClock, ask AskStorage) func(ctx context.Context, node string) (fence.Facts, error) {
	return func(ctx context.Context, node string) (fence.Facts, error) {
		views, err := r.Views(ctx, node, c.Now())
		if err != nil {
			return fence.Facts{}, err
		}
		i := slices.IndexFunc(views, func(v *FenceView) bool { return v.Node != nil })
		if i < 0 {
			return fence.Facts{}, fmt.Errorf("node %s %w", node, ErrNodeGone)
		}
		view := views[i]
		view.Facts.SilentManager = r.silentManager(ctx, c.Now())
		if ask != nil {
			// A missing answer is ignored here, as in an incident, where it is logged.
			view.Facts.Report, _ = ask(ctx, view.Facts)
		}
		return view.Facts, r.addOthers(ctx, view)
	}
}

// Quiet reports whether the machine is and was healthy, without a NetworkFence: then only its own record matters. After a
// taint or a missed loss, it is read live once more. A stale cache may still show a force-deleted attachment, whose
// volume would then be dropped by mistake.
func (v *FenceView) Quiet() bool {
	n, s := v.Facts.Node, v.Facts.Status
	return n.Ready && !n.OutOfService && !fence.MissedLoss(s, n) && !v.named && len(s.Fences) == 0 && (s.Phase == "" || s.Phase == v1alpha1.NodeHealthy && s.Reason != fence.ReasonTaintedButReady)
}

// alone reports whether a decision needs no other nodes: the node has no fences yet, and the only question is whether the
// node is healthy, lost or to be fenced.
func (v *FenceView) alone() bool {
	n, s := v.Facts.Node, v.Facts.Status
	watched := s.Phase == "" || s.Phase == v1alpha1.NodeHealthy || s.Phase == v1alpha1.NodeLost
	return watched && len(s.Fences) == 0 && !(n.Ready && v.named)
}

// get reads a cluster-scoped object, and reports whether it exists.
func get(ctx context.Context, from client.Reader, name string, into client.Object) (bool, error) {
	err := from.Get(ctx, client.ObjectKey{Name: name}, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %T %s: %w", into, name, err)
	}
	return true, nil
}

// profiles that are not switched off in the configuration.
func (r *FenceReader) profiles() []config.FencingProfile {
	var on []config.FencingProfile
	for _, p := range r.config.Profiles {
		if p.Mode != config.Off {
			on = append(on, p)
		}
	}
	return on
}

// Protects reports whether the configuration protects a driver's volumes.
func (r *FenceReader) Protects(driver string) bool { return r.config.Protects(driver) }

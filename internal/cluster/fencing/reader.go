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
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// FenceReader gathers facts on nodes that may have to be fenced.
type FenceReader struct {
	config config.Fencing
	// nodes and records are where the node itself, and NodeFences and NetworkFences, are read; objects is where
	// all else is. Each is a cache or the API server.
	nodes, records, objects client.Reader
	// decides: what a stale cache could harm with is read with live. Then there is a nodesVersion.
	decides      bool
	nodesVersion NodesVersion
	// once is what was read of the whole cluster, for one incident; nil is to read it each time.
	once *surroundings
	// shared are pods that another look has read; nil is to read them each time.
	shared *atomic.Pointer[podsAround]
	// volumes is the cache with ClaimIndex and HandleIndex: what is read of a
	// PersistentVolume never changes.
	volumes client.Reader
	// live reads the pods of a node, which are not cached.
	live client.Reader
	// indexed: objects is a cache with FenceIndexes; and addonsIndexed, with those of IndexAddons too.
	indexed       bool
	addonsIndexed *atomic.Bool
}

// NewFenceReader reads everything from objects, a cache or the API server.
// volumes is a cache with ClaimIndex and HandleIndex, and live the API server.
func NewFenceReader(c config.Fencing, objects, volumes, live client.Reader) *FenceReader {
	return &FenceReader{config: c, nodes: objects, records: objects, objects: objects, volumes: volumes, live: live}
}

// Policy of fencing, as configured.
func (r *FenceReader) Policy() fence.Policy { return r.config.Policy() }

// WithIndexes is the same reader, over a cache with FenceIndexes.
func (r *FenceReader) WithIndexes() *FenceReader {
	indexed := *r
	indexed.indexed, indexed.addonsIndexed = true, &atomic.Bool{}
	return &indexed
}

// WithLiveNode is the same reader, but it asks the API server whether the node is lost.
func (r *FenceReader) WithLiveNode() *FenceReader {
	fresh := *r
	fresh.nodes = r.live
	return &fresh
}

// Live is the same reader for decisions that may harm. It asks the API server for what a stale cache could harm with:
// the node, NetworkFences, the records of machines in an incident, and all nodes' addresses. What else it reads may be late:
//   - VolumeAttachments: a volume can be mounted only once the kubelet has written it to the Node (volumesInUse), which is
//     read live, and after the attachments. Of a Node that is gone, all are read live until that is on record. A volume whose attachment is shown
//     though it is gone is only held for longer, unless the node works and did not reboot: then each attachment is read by name.
//   - What csi-addons and pods report as addresses of a Ready node: that is as old as their last report in any case.
func (r *FenceReader) Live(nodes NodesVersion) *FenceReader {
	live := r.WithLiveNode()
	live.records, live.decides, live.nodesVersion = r.live, true, nodes
	return live
}

// ForIncident is the same reader, but it reads once what is in the whole cluster, other than records. It is not for use
// by several at once.
func (r *FenceReader) ForIncident(ctx context.Context) (*FenceReader, error) {
	once, err := r.surroundings(ctx)
	if err != nil {
		return nil, err
	}
	reader := *r
	reader.once = &once
	return &reader, nil
}

// Renewed is the same reader, having read again what is older than a moment: Ceph was asked, or other incidents came first.
func (r *FenceReader) Renewed(ctx context.Context) (*FenceReader, error) {
	if r.once != nil && time.Since(r.once.read) < sharedFor {
		return r, nil
	}
	return r.ForIncident(ctx)
}

// FenceView is what is seen of one machine.
type FenceView struct {
	Facts fence.Facts
	// Record is nil where there is none, and Node where another machine or none has the name.
	Record *v1alpha1.NodeFence
	Node   *corev1.Node
	// Unattached are the protected drivers without attachments; only read of a healthy node.
	Unattached []string
	// Leaving: some of what is held is there only for a while yet.
	Leaving bool
	// Cordoned is when the node was first seen so; zero if it is not.
	Cordoned time.Time
	// Unresolved: the node uses a volume that was found nowhere, so it is not known which volumes it holds.
	Unresolved bool
	// volumes that are on the node, and what of them is attached.
	volumes  []fence.Volume
	attached []attachedVolume
	// named: there are NetworkFences that were made for the node.
	named bool
	// unsettled are the records of all machines in an incident, where they were read live.
	unsettled []v1alpha1.NodeFence
}

// Views gather what is known of a node name: one view for each machine that has or had it, the earliest
// first, and the one without a record last. Records are read first: if one is
// still of that version when it is written, all that was read is newer.
func (r *FenceReader) Views(ctx context.Context, name string, now time.Time) ([]*FenceView, error) {
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
	// A leader that hung may have made one after all was over, or a record was lost.
	// And a fence of another node may shut this node out.
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

// AskStorage asks the storage itself about a node that may be fenced. The error is about what was not answered,
// and so is not checked.
type AskStorage func(context.Context, fence.Facts) (fence.Report, error)

// recordsOf all machines that have or had a node's name, the earliest first. The first of them has the node's name,
// mostly, and others a label.
func (r *FenceReader) recordsOf(ctx context.Context, name string, sakes *fence.Namesakes, unsettled []v1alpha1.NodeFence) ([]v1alpha1.NodeFence, error) {
	var first v1alpha1.NodeFence
	found, err := get(ctx, r.records, name, &first)
	if err != nil {
		return nil, err
	}
	var labelled v1alpha1.NodeFenceList
	if err := r.objects.List(ctx, &labelled, r.labelled(name)); err != nil {
		return nil, fmt.Errorf("listing the NodeFences of node %s: %w", name, err)
	}
	if r.decides {
		is := func(n *v1alpha1.NodeFence) bool { return n.Name == name } // it was read
		if labelled.Items, err = r.asTheyAre(ctx, unsettled, labelled.Items, is); err != nil {
			return nil, err
		}
	}
	records := slices.DeleteFunc(labelled.Items, func(o v1alpha1.NodeFence) bool { return o.Name == name || NodeOfFence(&o) != name })
	if found && NodeOfFence(&first) == name {
		records = append(records, first)
	} else {
		sakes.Taken = found
	}
	slices.SortFunc(records, func(a, b v1alpha1.NodeFence) int {
		return cmp.Or(cmp.Compare(a.Status.Ordinal, b.Status.Ordinal), strings.Compare(a.Name, b.Name))
	})
	for i := range records {
		sakes.Records = append(sakes.Records, FenceRecord(&records[i]))
	}
	return records, nil
}

// labelled selects the NodeFences of a node: by an index of a cache, or by their label.
func (r *FenceReader) labelled(node string) client.ListOption {
	if r.indexed {
		return client.MatchingFields{recordedNode: node}
	}
	return client.MatchingLabels{fence.NodeLabel: fence.LabelValue(node)}
}

// NodeOfFence is the name of the node that a NodeFence is of.
func NodeOfFence(n *v1alpha1.NodeFence) string {
	return cmp.Or(n.Status.NodeName, n.Labels[fence.NodeLabel], n.Name)
}

// FenceRecord is what fencing reads of a NodeFence.
func FenceRecord(n *v1alpha1.NodeFence) fence.Record {
	r := fence.Record{Name: n.Name, Status: n.Status, Override: fence.ReadOverride(n.Annotations, n.Status)}
	r.Status.NodeName = NodeOfFence(n)
	return r
}

// ErrNodeGone: there is no Node object of a name.
var ErrNodeGone = errors.New("is gone")

// FenceFacts gathers all facts of the machine that is a node now, as they are at that time: also what a
// fence could hurt, and who has its volumes open, whether or not one is due.
func (r *FenceReader) FenceFacts(c clock.PassiveClock, ask AskStorage) func(ctx context.Context, node string) (fence.Facts, error) {
	return func(ctx context.Context, node string) (fence.Facts, error) {
		r, err := r.ForIncident(ctx)
		if err != nil {
			return fence.Facts{}, err
		}
		views, err := r.Views(ctx, node, c.Now())
		if err != nil {
			return fence.Facts{}, err
		}
		i := slices.IndexFunc(views, func(v *FenceView) bool { return v.Node != nil })
		if i < 0 {
			return fence.Facts{}, fmt.Errorf("node %s %w", node, ErrNodeGone)
		}
		view := views[i]
		if ask != nil {
			// Without an answer nothing is checked, as when the node is fenced; then it is logged.
			view.Facts.Report, _ = ask(ctx, view.Facts)
		}
		return view.Facts, r.addOthers(ctx, view)
	}
}

// Quiet tells whether the machine is healthy and was, and
// there is no NetworkFence for its node: then nothing but its own record is of interest. One that
// was tainted, or lost while Fairlead did not look, is looked at live once more: a stale cache may still show a force-deleted attachment; its volume would then be dropped by mistake.
func (v *FenceView) Quiet() bool {
	n, s := v.Facts.Node, v.Facts.Status
	return n.Ready && !n.OutOfService && !fence.MissedLoss(s, n) && !v.named && len(s.Fences) == 0 && (s.Phase == "" || s.Phase == v1alpha1.NodeHealthy && s.Reason != fence.ReasonTaintedButReady)
}

// alone tells whether other nodes and their fences have no part in what becomes of
// this one: nothing was fenced yet, and all there is to say is that it is lost, or
// not, or to be fenced.
func (v *FenceView) alone() bool {
	n, s := v.Facts.Node, v.Facts.Status
	watched := s.Phase == "" || s.Phase == v1alpha1.NodeHealthy || s.Phase == v1alpha1.NodeLost
	return watched && len(s.Fences) == 0 && !(n.Ready && v.named)
}

// get reads a cluster-scoped object that may not be there.
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

// profile of a driver.
func (r *FenceReader) profile(driver string) (config.FencingProfile, bool) {
	for _, p := range r.profiles() {
		if p.Storage().Serves(driver) {
			return p, true
		}
	}
	return config.FencingProfile{}, false
}

// Protects tells whether a driver's volumes are protected by the configuration.
func (r *FenceReader) Protects(driver string) bool {
	_, ok := r.profile(driver)
	return ok
}

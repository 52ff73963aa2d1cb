package fencingreads

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
)

// FenceReader gathers facts on nodes that may have to be fenced.
type FenceReader struct {
	config config.Fencing
	// objects is a cache, or live: the API server. held has the volumes and attachments.
	objects, live client.Reader
	held          *Holdings
	// nodesVersion is how new the Nodes of objects are; nil: they are live.
	nodesVersion NodesVersion
	// snapshot is read in place of the cache; nil: the cache is read. shared reads it, and attachments those of all nodes, live.
	snapshot    *snapshot
	shared      *lists.Shared[*snapshot]
	attachments *lists.Shared[map[string][]attachedVolume]
	// taken are the addresses that are decided about by any snapshot.
	taken *taken
	// indexed: objects has the indexes of IndexFencing. addonsIndexed: it also has that of IndexAddons.
	indexed       bool
	addonsIndexed *atomic.Bool
	// surroundings of healthy nodes; nil: they are not read.
	surroundings *surroundings
}

// NewFenceReader reads from objects by the indexes of IndexFencing and reads.IndexNodes, volumes from holdings that have them, and
// the rest live.
func NewFenceReader(c config.Fencing, objects, live client.Reader, nodes NodesVersion, held *Holdings) *FenceReader {
	return (&FenceReader{config: c, objects: objects, live: live, nodesVersion: nodes, held: held, indexed: true, addonsIndexed: &atomic.Bool{}, taken: &taken{}, surroundings: &surroundings{}}).sharing()
}

// NewUncachedReader reads everything live, for commands that end soon.
func NewUncachedReader(ctx context.Context, c config.Fencing, live client.Reader) (*FenceReader, error) {
	held, err := ListedHoldings(ctx, live, c.Protects)
	return (&FenceReader{config: c, objects: lists.NewLive(live), live: live, held: held, taken: &taken{}, addonsIndexed: &atomic.Bool{}}).sharing(), err
}

func (r *FenceReader) sharing() *FenceReader {
	r.shared, r.attachments = lists.NewShared(r.readSnapshot), lists.NewShared(r.attachmentsNow)
	return r
}

// Policy of fencing, as configured.
func (r *FenceReader) Policy() fence.Policy { return r.config.Policy() }

// FenceView is what the cluster shows of one boot.
type FenceView struct {
	Facts fence.Facts
	// Record is nil if the boot has none. Node has the boot's node name now; nil: none has.
	Record *v1alpha1.NodeFence
	Node   *corev1.Node
	// Unproved are the CSIAddonsNodes whose report may be of an earlier boot of the node.
	Unproved []*csiaddons.CSIAddonsNode
	// Unresolved: the node uses a volume whose PersistentVolume was not found, so the list of its volumes is incomplete.
	Unresolved bool
	// Unread: what only a fence needs could not be read. The memory does not wait for it.
	Unread error
	// Tried: what follows from the record was tried in this look, and LastError is by which the API server refused it.
	Tried     bool
	LastError string
	// named: NetworkFences name the node.
	named bool
}

// Views returns one view for each boot that has or had a node name, a boot without a record first. last is how the Node
// was seen deleted, if it was.
func (r *FenceReader) Views(ctx context.Context, name string, now time.Time, last func(node string, exists bool) (fence.Deletion, error)) ([]*FenceView, error) {
	if !r.held.Synced() {
		return nil, ErrNotSynced
	}
	sakes := fence.Namesakes{Node: fence.Node{Name: name}}
	records, err := r.recordsOf(ctx, &sakes)
	if err != nil {
		return nil, err
	}
	policy := r.Policy()
	attached, node, err := r.attachedAndNode(ctx, &sakes)
	if err != nil {
		return nil, err
	}
	if last != nil {
		if sakes.Last, err = last(name, node != nil); err != nil {
			return nil, err
		}
	}
	seen, err := r.seenOn(ctx, &sakes, attached)
	if err != nil {
		return nil, err
	}
	views := make([]*FenceView, 0, len(records)+1)
	if f, missing := sakes.Missing(now, policy); missing {
		views = append(views, &FenceView{Facts: f})
	}
	for i := range records {
		views = append(views, &FenceView{Facts: sakes.Of(i), Record: records[i]})
	}
	// Healthy nodes need these too: a leader that hung may have created a fence late, a record may be lost, or a fence of
	// another node may block this node.
	optional, cancel := context.WithTimeout(ctx, briefly)
	defer cancel()
	fences, noCSIAddons, unread := r.networkFences(optional, r.objects)
	classes, err := r.fenceClasses(optional)
	unread = errors.Join(unread, err, seen.unread)
	facts := classes.facts()
	named := slices.ContainsFunc(fences, func(n fence.NetworkFence) bool { return n.Labels[fence.NodeLabel] == fence.LabelValue(name) })
	for _, v := range views {
		f := &v.Facts
		f.Now, f.Policy, f.Fences, f.NoCSIAddons, f.Classes = now, policy, fences, noCSIAddons, facts
		v.Unresolved, v.named, v.Unread = seen.unresolved, named, unread
		v.Node = node
		seen.left(f)
		if f.Node.Ready && f.Here() {
			if f.Ledger, err = r.ledger(optional, v, classes); err != nil {
				f.Ledger, v.Unread = nil, errors.Join(v.Unread, err)
			}
		}
		switch quiet := v.Quiet(); {
		case r.snapshot != nil && !quiet:
			r.addOthers(f)
		case quiet:
			v.Unread = errors.Join(v.Unread, r.addSurroundings(ctx, f))
		}
	}
	return views, nil
}

// briefly is how long a cache may take for what only a fence needs. The cache of a kind that could never be listed waits until the
// context ends, and what is remembered must be written in time.
const briefly = 5 * time.Second

// AskStorage asks the storage itself about a node that may be fenced. The error names the questions without an answer;
// what they ask is not checked.
type AskStorage func(context.Context, fence.Facts) (fence.Report, error)

// FenceRecord is what fencing reads of a NodeFence.
func FenceRecord(n *v1alpha1.NodeFence) fence.Record {
	return fence.Record{Name: n.Name, UID: string(n.UID), Spec: n.Spec, Status: n.Status, Request: fence.ReadRequest(n.Annotations)}
}

// ErrNodeGone: no Node has the name.
var ErrNodeGone = errors.New("is gone")

// FenceFacts reads all facts of the machine that has a node name now, whether or not it is to be fenced: also what a fence
// could hurt, and the clients of its volumes.
func (r *FenceReader) FenceFacts(c clock.PassiveClock, ask AskStorage) func(ctx context.Context, node string) (fence.Facts, error) {
	return func(ctx context.Context, node string) (fence.Facts, error) {
		r, err := r.Live(ctx)
		if err != nil {
			return fence.Facts{}, err
		}
		views, err := r.Views(ctx, node, c.Now(), nil)
		if err != nil {
			return fence.Facts{}, err
		}
		i := slices.IndexFunc(views, func(v *FenceView) bool { return v.Facts.Here() })
		if i < 0 {
			return fence.Facts{}, fmt.Errorf("node %s %w", node, ErrNodeGone)
		}
		view := views[i]
		if view.Unread != nil {
			return fence.Facts{}, view.Unread
		}
		view.Facts.SilentManager = r.silentManager(ctx, c.Now())
		if ask != nil {
			// A missing answer is ignored here, as in an incident, where it is logged.
			view.Facts.Report, _ = ask(ctx, view.Facts)
		}
		r.addOthers(&view.Facts)
		return view.Facts, nil
	}
}

// Quiet reports whether the node has worked without a break, without a NetworkFence: then only its own record matters, and other
// nodes are not read. After a loss, it is read live once more: a stale cache may still show a force-deleted attachment, whose volume
// would then be dropped by mistake.
func (v *FenceView) Quiet() bool {
	return v.Facts.Unbroken() && !v.named && len(v.Facts.Spec.Fences)+len(v.Facts.Torn) == 0
}

// get reads a cluster-scoped object, and reports whether it exists.
func get(ctx context.Context, from client.Reader, name string, into client.Object) (bool, error) {
	err := from.Get(ctx, client.ObjectKey{Name: name}, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %s %s: %w", kindOf(into), name, err)
	}
	return true, nil
}

// readAll lists the objects of a kind, without copies of a cache's.
func readAll[L client.ObjectList](ctx context.Context, from client.Reader, list L, which ...client.ListOption) (L, error) {
	if err := from.List(ctx, list, append(which, client.UnsafeDisableDeepCopy)...); err != nil {
		return list, fmt.Errorf("reading %s: %w", kindOf(list), err)
	}
	return list, nil
}

func kindOf(o any) string { return reflect.TypeOf(o).Elem().Name() }

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

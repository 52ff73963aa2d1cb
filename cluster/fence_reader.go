package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/fairlead-io/fairlead/api/config/v1alpha1"
	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/fence"
)

// FenceReader gathers facts on nodes that may have to be fenced.
type FenceReader struct {
	config config.Fencing
	// nodes and objects are a cache or the API server.
	nodes, objects client.Reader
	// others is where other nodes and the storage's servers are read.
	others client.Reader
	// volumes is the cache with ClaimIndex and HandleIndex: what is read of a
	// PersistentVolume never changes.
	volumes client.Reader
	// live reads the pods of a node, which are not cached.
	live client.Reader
}

// NewFenceReader reads everything from objects, a cache or the API server.
// volumes is a cache with ClaimIndex and HandleIndex, and live the API server.
func NewFenceReader(c config.Fencing, objects, volumes, live client.Reader) *FenceReader {
	return &FenceReader{config: c, nodes: objects, objects: objects, others: objects, volumes: volumes, live: live}
}

// Policy of fencing, as configured.
func (r *FenceReader) Policy() fence.Policy { return r.config.Policy() }

// WithLiveNode is the same reader, but it asks the API server whether the node is lost.
func (r *FenceReader) WithLiveNode() *FenceReader {
	fresh := *r
	fresh.nodes = r.live
	return &fresh
}

// WithOthersOf is the same reader, but it reads other nodes and servers where that one
// does: a cache is enough to see that they are not asked for.
func (r *FenceReader) WithOthersOf(cached *FenceReader) *FenceReader {
	cheap := *r
	cheap.others = cached.others
	return &cheap
}

// AddOthers reads other nodes, servers and NetworkFences anew into a view.
func (r *FenceReader) AddOthers(ctx context.Context, v *FenceView) error {
	if v.alone() {
		return nil
	}
	v.Facts.Others, v.Facts.Servers, v.Facts.Fences = nil, nil, nil
	return r.addOthers(ctx, &v.Facts)
}

// FenceView is what is seen of one node.
type FenceView struct {
	Facts fence.Facts
	// Record and Node are nil where there is none.
	Record *v1alpha1.NodeFence
	Node   *corev1.Node
	// Unattached are the protected drivers without attachments; only read of a healthy node.
	Unattached []string
	// Leaving: some of what is held is there only for a while yet.
	Leaving bool
	// Cordoned is when the node was first seen so; zero if it is not.
	Cordoned time.Time
	// volumes that are on the node, and what of them is attached.
	volumes  []fence.Volume
	attached []attachedVolume
	// named: there are NetworkFences that were made for the node.
	named bool
}

// Facts gathers what is known of one node. Its record is read first: if it is
// still of that version when it is written, all that was read is newer.
func (r *FenceReader) Facts(ctx context.Context, name string, now time.Time) (*FenceView, error) {
	v := &FenceView{Facts: fence.Facts{Now: now, Node: fence.Node{Name: name}}}
	f := &v.Facts
	var record v1alpha1.NodeFence
	if found, err := get(ctx, r.objects, name, &record); err != nil {
		return nil, err
	} else if found {
		v.Record, f.Status = &record, record.Status
		f.Override = fence.ReadOverride(record.Annotations, record.Status)
	}
	f.Policy = r.Policy()
	var err error
	// Attachments before the node: who sees that an attachment is gone must not
	// miss that its node was lost before.
	if v.attached, err = r.attachedTo(ctx, name); err != nil {
		return nil, err
	}
	var node corev1.Node
	if found, err := get(ctx, r.nodes, name, &node); err != nil {
		return nil, err
	} else if found {
		v.Node, f.Node = &node, FenceNode(&node)
	}
	if err := r.addHolding(ctx, v); err != nil {
		return nil, err
	}
	addons, err := r.addons(ctx, f.Node.Ready)
	if err != nil {
		return nil, err
	}
	if f.Node.Ready {
		if f.Ledger, err = r.ledger(ctx, v, addons); err != nil {
			return nil, err
		}
	}
	// A leader that hung may have made one after all was over, or a record was lost.
	// And one of another node may shut this one out.
	if f.Fences, f.NoCSIAddons, err = r.networkFences(ctx); err != nil {
		return nil, err
	}
	v.named = slices.ContainsFunc(f.Fences, func(n fence.NetworkFence) bool { return n.Labels[fence.NodeLabel] == fence.LabelValue(name) })
	if v.alone() {
		return v, nil
	}
	return v, r.addOthers(ctx, f)
}

// AskStorage asks the storage itself about a node that may be fenced. The error is about what was not answered,
// and so is not checked.
type AskStorage func(context.Context, fence.Facts) (fence.Report, error)

// FenceFacts gathers all facts of one node, as they are at that time: also what a
// fence could hurt, and who has its volumes open, whether or not one is due.
func (r *FenceReader) FenceFacts(c clock.PassiveClock, ask AskStorage) func(ctx context.Context, node string) (fence.Facts, error) {
	return func(ctx context.Context, node string) (fence.Facts, error) {
		view, err := r.Facts(ctx, node, c.Now())
		if err != nil {
			return fence.Facts{}, err
		}
		if ask != nil {
			// Without an answer nothing is checked, as when the node is fenced; then it is logged.
			view.Facts.Report, _ = ask(ctx, view.Facts)
		}
		view.Facts.Others, view.Facts.Servers, view.Facts.Fences = nil, nil, nil
		return view.Facts, r.addOthers(ctx, &view.Facts)
	}
}

// Quiet tells whether the node is healthy and was, and is the same machine, and
// there is no NetworkFence for it: then nothing but its own record is of interest. One that
// was tainted is looked at live once more: an attachment that was deleted by force may be in caches still, and what it
// was of would pass for what the node has, and be forgotten with it.
func (v *FenceView) Quiet() bool {
	n, s := v.Facts.Node, v.Facts.Status
	same := s.Node.SystemUUID == n.Machine.SystemUUID && (s.Node.SystemUUID != "" || s.Node.UID == n.Machine.UID) || s.Node == v1alpha1.MachineIdentity{}
	return n.Ready && !n.OutOfService && same && !v.named && len(s.Fences) == 0 && (s.Phase == "" || s.Phase == v1alpha1.NodeHealthy && s.Reason != fence.ReasonTaintedButReady)
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

// NotInstalled tells that a kind is not there: it never was, or it was taken away.
func NotInstalled(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }

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

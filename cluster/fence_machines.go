package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/fence"
)

// NodesVersion is the resource version that the cache of Nodes has reached; "" is not known.
type NodesVersion func(context.Context) string

const (
	// catchUp is how long the cache of Nodes is waited for. In a large cluster some kubelet writes its
	// Node at any moment (each does every 5 minutes at least), so the cache is there in much less.
	catchUp = time.Second
	// lookAtCache is how often the cache is looked at meanwhile.
	lookAtCache = 5 * time.Millisecond
)

// otherNodes are all nodes.
func (r *FenceReader) otherNodes(ctx context.Context) ([]fence.Node, error) {
	var list corev1.NodeList
	if err := r.objects.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	if r.decides {
		if err := r.nodesNow(ctx, &list); err != nil {
			return nil, fmt.Errorf("listing nodes: %w", err)
		}
	}
	nodes := make([]fence.Node, 0, len(list.Items))
	for i := range list.Items {
		nodes = append(nodes, FenceNode(&list.Items[i]))
	}
	return nodes, nil
}

// nodesNow are all nodes as new as the API server has them now. A page of them is read. Of a large cluster it is a small
// page, of which only the resource version counts: the API server sends a watch all changes in that order, so a cache
// that has reached the version has all changes that a list would show. A cache that does not get there is not waited for.
func (r *FenceReader) nodesNow(ctx context.Context, cached *corev1.NodeList) error {
	first := client.Limit(largePage)
	if len(cached.Items) > largePage {
		first = 1
	}
	var list corev1.NodeList
	if err := r.live.List(ctx, &list, first); err != nil {
		return err
	}
	if list.Continue == "" {
		*cached = list
		return nil
	}
	reached := func(ctx context.Context) (bool, error) {
		order, err := resourceversion.CompareResourceVersion(r.nodesVersion(ctx), list.ResourceVersion)
		return err == nil && order >= 0, nil
	}
	if err := wait.PollUntilContextTimeout(ctx, lookAtCache, catchUp, true, reached); err != nil {
		*cached = corev1.NodeList{}
		return NewLive(r.live).List(ctx, cached)
	}
	return r.objects.List(ctx, cached, client.UnsafeDisableDeepCopy)
}

// unsettled are the records of all machines in an incident, as they are now: by them an address stays blocked. A record is
// labelled before the incident of its machine is recorded, and until the incident is over.
func (r *FenceReader) unsettled(ctx context.Context) ([]v1alpha1.NodeFence, error) {
	if !r.decides {
		return nil, nil
	}
	not, err := labels.NewRequirement(fence.PhaseLabel, selection.NotIn, []string{string(v1alpha1.NodeHealthy)})
	if err != nil {
		return nil, err
	}
	var list v1alpha1.NodeFenceList
	if err := NewLive(r.live).List(ctx, &list, client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*not)}); err != nil {
		return nil, fmt.Errorf("listing the NodeFences of machines in an incident: %w", err)
	}
	return list.Items, nil
}

// otherRecords are all records. Those of healthy machines may be late: their addresses are what csi-addons reported minutes
// ago, and the Nodes are read too.
func (r *FenceReader) otherRecords(ctx context.Context, unsettled []v1alpha1.NodeFence) ([]v1alpha1.NodeFence, error) {
	var list v1alpha1.NodeFenceList
	err := r.objects.List(ctx, &list, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing NodeFences: %w", err)
	}
	if r.decides {
		if list.Items, err = r.asTheyAre(ctx, unsettled, list.Items, settled); err != nil {
			return nil, err
		}
	}
	return list.Items, nil
}

func settled(n *v1alpha1.NodeFence) bool {
	return !fence.Keep(n.Status) && n.Labels[fence.PhaseLabel] == string(v1alpha1.NodeHealthy)
}

// asTheyAre are the unsettled records, and the cached ones: as they are now, but for some that may be late.
func (r *FenceReader) asTheyAre(ctx context.Context, unsettled, cached []v1alpha1.NodeFence, late func(*v1alpha1.NodeFence) bool) ([]v1alpha1.NodeFence, error) {
	all, known := slices.Clone(unsettled), map[string]bool{}
	for i := range unsettled {
		known[unsettled[i].Name] = true
	}
	for i := range cached {
		n := &cached[i]
		switch {
		case known[n.Name]:
		case late(n):
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

// VersionOfNodes is what the cache's store of Nodes has reached.
func VersionOfNodes(objects cache.Informers) NodesVersion {
	return func(ctx context.Context) string {
		informer, err := objects.GetInformer(ctx, &corev1.Node{})
		if err != nil {
			return ""
		}
		if shared, ok := informer.(toolscache.SharedInformer); ok {
			return shared.GetStore().LastStoreSyncResourceVersion()
		}
		return ""
	}
}

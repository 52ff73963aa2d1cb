package fencing

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/lists"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// NodesVersion returns the resource version that a cache of Nodes has reached; "" if unknown.
type NodesVersion func(context.Context) string

const (
	// catchUp limits the wait for a cache of Nodes. In a large cluster the cache needs much less, since kubelets write all
	// the time: each at least every 5 minutes.
	catchUp = time.Second
	// lookAtCache is how often the cache is checked meanwhile.
	lookAtCache = time.Millisecond
)

// caughtUp reports whether a cache of Nodes is as good as a live read: it has reached the present version of Nodes. A
// watch gets all changes in the order of their versions
// (https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions).
func (cached NodesVersion) caughtUp(ctx context.Context, live client.Reader) (bool, error) {
	var now metav1.PartialObjectMetadataList
	now.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := live.List(ctx, &now, client.Limit(1)); err != nil {
		return false, fmt.Errorf("asking for the version of Nodes: %w", err)
	}
	failed := wait.PollUntilContextTimeout(ctx, lookAtCache, catchUp, true, func(ctx context.Context) (bool, error) {
		order, err := resourceversion.CompareResourceVersion(cached(ctx), now.ResourceVersion)
		return order >= 0, err
	})
	return failed == nil, nil
}

// allNodes reads all nodes, fresh if the reader decides.
func (r *FenceReader) allNodes(ctx context.Context) ([]fence.Node, error) {
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

// nodesNow refreshes cached Nodes to the state of the API server. A small cluster is listed. In a large cluster the cache
// may catch up; if it does not in time, all Nodes are listed.
func (r *FenceReader) nodesNow(ctx context.Context, cached *corev1.NodeList) error {
	if len(cached.Items) <= lists.LargePage {
		var all corev1.NodeList
		if err := r.live.List(ctx, &all, client.Limit(lists.LargePage)); err != nil || all.Continue == "" {
			*cached = all
			return err
		}
	}
	if there, err := r.nodesVersion.caughtUp(ctx, r.live); err != nil {
		return err
	} else if there {
		return r.objects.List(ctx, cached, client.UnsafeDisableDeepCopy)
	}
	*cached = corev1.NodeList{}
	return lists.NewLive(r.live).List(ctx, cached)
}

// unsettled are the records of all machines in an incident, if the reader decides: they keep addresses blocked.
func (r *FenceReader) unsettled(ctx context.Context) ([]v1alpha1.NodeFence, error) {
	if !r.decides {
		return nil, nil
	}
	return recordsInIncident(ctx, r.live)
}

// recordsInIncident reads the records that are not Healthy, live. The label is written before an incident is recorded, and
// changed after the incident is over.
func recordsInIncident(ctx context.Context, live client.Reader) ([]v1alpha1.NodeFence, error) {
	not, err := labels.NewRequirement(fence.PhaseLabel, selection.NotIn, []string{string(v1alpha1.NodeHealthy)})
	if err != nil {
		return nil, err
	}
	var list v1alpha1.NodeFenceList
	if err := lists.NewLive(live).List(ctx, &list, client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*not)}); err != nil {
		return nil, fmt.Errorf("listing the NodeFences of machines in an incident: %w", err)
	}
	return list.Items, nil
}

// allRecords reads all records. Those of healthy machines may be stale: their addresses are minutes old in any case, and
// the Nodes are read too.
func (r *FenceReader) allRecords(ctx context.Context, unsettled []v1alpha1.NodeFence) ([]v1alpha1.NodeFence, error) {
	var list v1alpha1.NodeFenceList
	err := r.objects.List(ctx, &list, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing NodeFences: %w", err)
	}
	if r.decides {
		return r.refreshed(ctx, unsettled, list.Items)
	}
	return list.Items, nil
}

func settled(n *v1alpha1.NodeFence) bool {
	return !fence.Keep(n.Status) && n.Labels[fence.PhaseLabel] == string(v1alpha1.NodeHealthy)
}

// refreshed joins the unsettled records with the cached ones, which are read again unless they are settled.
func (r *FenceReader) refreshed(ctx context.Context, unsettled, cached []v1alpha1.NodeFence) ([]v1alpha1.NodeFence, error) {
	all, known := slices.Clone(unsettled), map[string]bool{}
	for i := range unsettled {
		known[unsettled[i].Name] = true
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

// VersionOfNodes is the NodesVersion of a cache.
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

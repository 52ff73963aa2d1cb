package fencingreads

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
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

// recordsInIncident reads the records of lost and of fenced boots, live.
func recordsInIncident(ctx context.Context, live client.Reader) ([]v1alpha1.NodeFence, error) {
	var list v1alpha1.NodeFenceList
	if err := lists.NewLive(live).List(ctx, &list, client.HasLabels{fence.IncidentLabel}); err != nil {
		return nil, fmt.Errorf("listing the NodeFences in an incident: %w", err)
	}
	return list.Items, nil
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

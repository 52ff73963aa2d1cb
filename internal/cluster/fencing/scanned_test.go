package fencing

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

func TestScannedAnswersIndexesWithOneList(t *testing.T) {
	scheme := testkit.Value[*runtime.Scheme](t)(cluster.NewScheme())
	lists := 0
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects.ClientPod("a", "node-a"), objects.ClientPod("b", "node-b")).
		WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			lists++
			return c.List(ctx, list, options...)
		}}).Build()
	s := NewScanned(live)
	testkit.Must(t, IndexFencing(t.Context(), s))
	for _, node := range []string{"node-a", "node-b", "node-c"} {
		var list corev1.PodList
		testkit.Must(t, s.List(t.Context(), &list, client.MatchingFields{podNode: node}))
		there := node != "node-c"
		must.True(t, there == (len(list.Items) == 1) && (!there || list.Items[0].Spec.NodeName == node), "%s: got %d pods", node, len(list.Items))
	}
	must.True(t, lists == 1, "%d lists", lists)
	var all corev1.PodList
	err := s.List(t.Context(), &all)
	must.True(t, err == nil && len(all.Items) == 2, "without an index: %d pods, %v", len(all.Items), err)
}

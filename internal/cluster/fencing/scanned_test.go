package fencing

import (
	"context"
	"errors"
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
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects.CephVolume("pvc-a", rbd, "one"), objects.CephVolume("pvc-b", rbd, "one")).
		WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			lists++
			return c.List(ctx, list, options...)
		}}).Build()
	s := NewScanned(live)
	testkit.Must(t, errors.Join(cluster.IndexClaims(t.Context(), s), IndexFencing(t.Context(), s)))
	for _, name := range []string{"pvc-a", "pvc-b", "pvc-c"} {
		pv := objects.CephVolume(name, rbd, "one")
		var list corev1.PersistentVolumeList
		testkit.Must(t, s.List(t.Context(), &list, client.MatchingFields{volumeHandle: cluster.Bucket(driverID(rbd, pv.Spec.CSI.VolumeHandle))}))
		there := name != "pvc-c"
		must.True(t, there == (len(list.Items) == 1) && (!there || list.Items[0].Name == name), "%s: got %d volumes", name, len(list.Items))
	}
	must.True(t, lists == 1, "%d lists", lists)
	var all corev1.PersistentVolumeList
	err := s.List(t.Context(), &all)
	must.True(t, err == nil && len(all.Items) == 2, "without an index: %d volumes, %v", len(all.Items), err)
}

package fencing

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/internal/cluster"
)

func TestScannedAnswersIndexesWithOneList(t *testing.T) {
	scheme, err := cluster.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	lists := 0
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(fencedPV("pvc-a", rbdDriver, "one"), fencedPV("pvc-b", rbdDriver, "one")).
		WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			lists++
			return c.List(ctx, list, options...)
		}}).Build()
	s := NewScanned(live)
	if err := errors.Join(cluster.IndexClaims(t.Context(), s), IndexHandles(t.Context(), s)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pvc-a", "pvc-b", "pvc-c"} {
		pv := fencedPV(name, rbdDriver, "one")
		var list corev1.PersistentVolumeList
		if err := s.List(t.Context(), &list, client.MatchingFields{HandleIndex: FenceHandle(rbdDriver, pv.Spec.CSI.VolumeHandle)}); err != nil {
			t.Fatal(err)
		}
		if there := name != "pvc-c"; there != (len(list.Items) == 1) || there && list.Items[0].Name != name {
			t.Errorf("%s: got %d volumes", name, len(list.Items))
		}
	}
	if lists != 1 {
		t.Errorf("%d lists", lists)
	}
	var all corev1.PersistentVolumeList
	if err := s.List(t.Context(), &all); err != nil || len(all.Items) != 2 {
		t.Errorf("without an index: %d volumes, %v", len(all.Items), err)
	}
}

package fencing

import (
	"fmt"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

// Values share buckets, and kinds share names of fields. A list still returns only the requested objects.
func TestBucketsReturnRequestedObjects(t *testing.T) {
	scheme := testkit.Value[*runtime.Scheme](t)(cluster.NewScheme())
	builder := fake.NewClientBuilder().WithScheme(scheme)
	buckets := NewBuckets(nil, fenceIndexes{builder})
	for _, index := range HolderIndexes() {
		testkit.Must(t, buckets.IndexField(t.Context(), index.Object, index.Field, index.Keys))
	}
	same := map[string][]string{} // volumes by bucket
	var two []string
	for i := 0; two == nil; i++ {
		name := fmt.Sprint("pvc-", i)
		if same[bucket(name)] = append(same[bucket(name)], name); len(same[bucket(name)]) == 2 {
			two = same[bucket(name)]
		}
	}
	for i, name := range two {
		builder.WithObjects(objects.Attachment(name, "node-1", rbd), remembering(fmt.Sprint("node-", i), "Healthy", name, "pvc-other"))
	}
	buckets.Reader = builder.Build()
	for i, name := range two {
		var attachments storagev1.VolumeAttachmentList
		if err := buckets.List(t.Context(), &attachments, client.MatchingFields{heldVolume: name}); err != nil || len(attachments.Items) != 1 || *attachments.Items[0].Spec.Source.PersistentVolumeName != name {
			t.Errorf("%s: got %+v, %v", name, attachments.Items, err)
		}
		var records v1alpha1.NodeFenceList
		if err := buckets.List(t.Context(), &records, client.MatchingFields{heldVolume: name}); err != nil || len(records.Items) != 1 || records.Items[0].Name != fmt.Sprint("node-", i) {
			t.Errorf("%s: got %+v, %v", name, records.Items, err)
		}
	}
	var both, all v1alpha1.NodeFenceList
	err := buckets.List(t.Context(), &both, client.MatchingFields{heldVolume: "pvc-other"})
	must.True(t, err == nil && len(both.Items) == 2, "got %+v, %v", both.Items, err)
	err = buckets.List(t.Context(), &all)
	must.True(t, err == nil && len(all.Items) == 2, "got %+v, %v", all.Items, err)
}

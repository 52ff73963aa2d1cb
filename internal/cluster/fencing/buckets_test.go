package fencing

import (
	"fmt"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
)

// Values share buckets, and kinds have fields of one name: what was asked for is found, and no more.
func TestBucketsHoldWhatIsAskedFor(t *testing.T) {
	scheme, err := cluster.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	buckets := NewBuckets(nil, fenceIndexes{builder})
	for _, index := range HolderIndexes() {
		if err := buckets.IndexField(t.Context(), index.Object, index.Field, index.Keys); err != nil {
			t.Fatal(err)
		}
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
		builder.WithObjects(ofVolume(fmt.Sprint("va-", i), name, "node-1"), remembering(fmt.Sprint("node-", i), "Healthy", name, "pvc-other"))
	}
	buckets.Reader = builder.Build()
	for i, name := range two {
		var attachments storagev1.VolumeAttachmentList
		if err := buckets.List(t.Context(), &attachments, client.MatchingFields{heldVolume: name}); err != nil || len(attachments.Items) != 1 || attachments.Items[0].Name != fmt.Sprint("va-", i) {
			t.Errorf("%s: got %+v, %v", name, attachments.Items, err)
		}
		var records v1alpha1.NodeFenceList
		if err := buckets.List(t.Context(), &records, client.MatchingFields{heldVolume: name}); err != nil || len(records.Items) != 1 || records.Items[0].Name != fmt.Sprint("node-", i) {
			t.Errorf("%s: got %+v, %v", name, records.Items, err)
		}
	}
	var both, all v1alpha1.NodeFenceList
	if err := buckets.List(t.Context(), &both, client.MatchingFields{heldVolume: "pvc-other"}); err != nil || len(both.Items) != 2 {
		t.Errorf("got %+v, %v", both.Items, err)
	}
	if err := buckets.List(t.Context(), &all); err != nil || len(all.Items) != 2 {
		t.Errorf("got %+v, %v", all.Items, err)
	}
}

package cluster

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/fairlead-io/fairlead/cluster/longhorn"
	"github.com/fairlead-io/fairlead/storage"
)

// What can't be cached as it says would end the controller as it starts.
func TestControllerCacheFitsItsKinds(t *testing.T) {
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	cluster := []string{"PersistentVolume", "StorageClass", "VolumeAttachment", "Node", "PriorityClass"}
	for gvk := range scheme.AllKnownTypes() {
		scope := meta.RESTScopeNamespace
		if slices.Contains(cluster, gvk.Kind) && gvk.Group != longhorn.GroupVersion.Group {
			scope = meta.RESTScopeRoot
		}
		mapper.Add(gvk, scope)
	}
	options, err := ControllerCache(storage.Profiles())
	if err != nil {
		t.Fatal(err)
	}
	options.Scheme, options.Mapper = scheme, mapper
	if _, err := cache.New(&rest.Config{Host: "https://localhost"}, options); err != nil {
		t.Fatal(err)
	}
}

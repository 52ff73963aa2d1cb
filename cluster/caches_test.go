package cluster

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/fairlead-io/fairlead/storage"
)

// What can't be cached as it says would end the controller as it starts.
func TestControllerCacheFitsItsKinds(t *testing.T) {
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	cluster := []string{"PersistentVolume", "StorageClass", "VolumeAttachment"}
	for gvk := range scheme.AllKnownTypes() {
		scope := meta.RESTScopeNamespace
		for _, kind := range cluster {
			if gvk.Kind == kind {
				scope = meta.RESTScopeRoot
			}
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

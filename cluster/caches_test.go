package cluster

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	config "github.com/fairlead-io/fairlead/api/config/v1alpha1"
	"github.com/fairlead-io/fairlead/cluster/longhorn"
	"github.com/fairlead-io/fairlead/fence"
	"github.com/fairlead-io/fairlead/storage"
)

// What can't be cached as it says would end the controller as it starts.
func TestControllerCacheFitsItsKinds(t *testing.T) {
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	cluster := []string{"PersistentVolume", "StorageClass", "VolumeAttachment", "Node", "PriorityClass", "NodeFence", "CSINode", "CSIDriver"}
	for gvk := range scheme.AllKnownTypes() {
		scope := meta.RESTScopeNamespace
		if slices.Contains(cluster, gvk.Kind) && gvk.Group != longhorn.GroupVersion.Group {
			scope = meta.RESTScopeRoot
		}
		mapper.Add(gvk, scope)
	}
	var fenced config.Fencing
	for _, s := range fence.Storages() {
		fenced.Profiles = append(fenced.Profiles, config.FencingProfile{Name: s.Name, Namespace: s.Namespace})
	}
	for name, test := range map[string]struct {
		profiles []storage.Profile
		fencing  config.Fencing
	}{
		"shared volumes": {storage.Profiles(), config.Fencing{}},
		"fencing":        {nil, fenced},
		"both":           {storage.Profiles(), fenced},
	} {
		options, err := ControllerCache(test.profiles, test.fencing)
		if err != nil {
			t.Fatal(name, err)
		}
		options.Scheme, options.Mapper = scheme, mapper
		if _, err := cache.New(&rest.Config{Host: "https://localhost"}, options); err != nil {
			t.Fatal(name, err)
		}
	}
}

package caches

import (
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
)

// cacheFencing adds the objects that fencing reads. Of pods and CSIAddonsNodes, these are only those of the storage systems,
// also of those whose mode is off: the controller watches them.
func cacheFencing(kinds map[client.Object]cache.ByObject, pods map[string]cache.Config, fencing config.Fencing) {
	addons := map[string]cache.Config{}
	for _, p := range fencing.Profiles {
		addons[p.Namespace], pods[p.Namespace] = cache.Config{}, cache.Config{}
	}
	kinds[&csiaddons.CSIAddonsNode{}] = cache.ByObject{Namespaces: addons}
	kinds[&storagev1.CSINode{}] = cache.ByObject{Transform: slimCSINode}
	kinds[&v1alpha1.NodeFence{}] = cache.ByObject{Transform: commonRecord}
	kinds[&storagev1.CSIDriver{}] = cache.ByObject{}
}

// NewCache is cache.New, which asks the API server whether a kind with options is namespaced and
// ends the controller if the kind is missing: csi-addons may be installed later.
func NewCache(c *rest.Config, o cache.Options) (cache.Cache, error) {
	scopes := &knownScopes{RESTMapper: o.Mapper, known: true}
	o.Mapper = scopes
	objects, err := cache.New(c, o)
	scopes.known = false
	return objects, err
}

// knownScopes answers for CSIAddonsNodes while a cache is built.
type knownScopes struct {
	meta.RESTMapper
	known bool
}

// RESTMapping implements meta.RESTMapper.
func (m *knownScopes) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if m.known && kind == csiaddons.GroupVersion.WithKind("CSIAddonsNode").GroupKind() {
		return &meta.RESTMapping{Scope: meta.RESTScopeNamespace}, nil
	}
	return m.RESTMapper.RESTMapping(kind, versions...)
}

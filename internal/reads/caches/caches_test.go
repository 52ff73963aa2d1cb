package caches_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence/profiles"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/reads/caches"
	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// A wrong cache option would end the controller at its start.
func TestControllerCacheFitsItsKinds(t *testing.T) {
	scheme, err := reads.NewScheme()
	must.Do(t, err)
	mapper := meta.NewDefaultRESTMapper(nil)
	cluster := []string{"PersistentVolume", "StorageClass", "VolumeAttachment", "Node", "PriorityClass", "NodeFence", "CSINode", "CSIDriver"}
	for gvk := range scheme.AllKnownTypes() {
		scope := meta.RESTScopeNamespace
		if slices.Contains(cluster, gvk.Kind) && gvk.Group != longhorn.GroupVersion.Group {
			scope = meta.RESTScopeRoot
		}
		if gvk.Group != csiaddons.GroupVersion.Group { // it may be installed later
			mapper.Add(gvk, scope)
		}
	}
	var fenced config.Fencing
	names := longhorn.DefaultNames()
	for _, s := range profiles.All() {
		fenced.Profiles = append(fenced.Profiles, config.FencingProfile{Name: s.Name, Namespace: s.Namespace})
	}
	for name, test := range map[string]struct {
		names   *longhorn.Names
		fencing config.Fencing
	}{
		"shared volumes": {&names, config.Fencing{}},
		"fencing":        {nil, fenced},
		"both":           {&names, fenced},
	} {
		options, err := caches.ControllerCache(test.names, test.fencing)
		if err != nil {
			t.Fatal(name, err)
		}
		options.Scheme, options.Mapper = scheme, mapper
		if _, err := caches.NewCache(&rest.Config{Host: "https://localhost"}, options); err != nil {
			t.Fatal(name, err)
		}
	}
}

// The controller may not list ConfigMaps, nor CSIAddonsNodes of all namespaces.
func TestFencingCachesOnlyListableKinds(t *testing.T) {
	names := longhorn.DefaultNames()
	for _, mode := range []config.Switch{config.Fence, config.Guard, config.Off} {
		var fenced config.Fencing
		for _, s := range profiles.All() {
			fenced.Profiles = append(fenced.Profiles, config.FencingProfile{Name: s.Name, Namespace: "of-" + s.Name, Mode: mode})
		}
		for _, served := range []*longhorn.Names{nil, &names} {
			options, err := caches.ControllerCache(served, fenced)
			if err != nil {
				t.Fatal(mode, err)
			}
			var pods, clients map[string]cache.Config
			for o, by := range options.ByObject {
				switch o.(type) {
				case *corev1.ConfigMap:
					t.Errorf("%s: ConfigMaps are cached by %+v", mode, by)
				case *corev1.Pod:
					pods = by.Namespaces
				case *csiaddons.CSIAddonsNode:
					clients = by.Namespaces
				}
			}
			for _, s := range profiles.All() {
				if _, cached := clients["of-"+s.Name]; !cached || len(clients) != len(profiles.All()) {
					t.Errorf("%s: CSIAddonsNodes are cached by %v", mode, clients)
				}
			}
			// Else the controller's watch would have the pods of all namespaces cached.
			if _, all := pods[metav1.NamespaceAll]; all || len(pods) == 0 {
				t.Errorf("%s: pods are cached by %v", mode, pods)
			}
		}
	}
}

package caches_test

import (
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
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
			if pods[metav1.NamespaceAll].LabelSelector == nil {
				t.Errorf("%s: pods are cached by %v", mode, pods)
			}
		}
	}
}

// Of a pod that may use a volume without attachment, only its place and its gates are needed.
func TestPlacedPodsAreCachedSlim(t *testing.T) {
	options, err := caches.ControllerCache(nil, config.Fencing{Profiles: []config.FencingProfile{{Name: "rook-ceph", Namespace: "rook-ceph", Mode: config.Fence}}})
	must.Do(t, err)
	var workloads cache.Config
	for o, by := range options.ByObject {
		if _, pods := o.(*corev1.Pod); pods {
			workloads = by.Namespaces[metav1.NamespaceAll]
		}
	}
	if !workloads.LabelSelector.Matches(labels.Set{fence.UnattachedLabel: "true"}) || workloads.LabelSelector.Matches(labels.Set{"app": "x"}) {
		t.Errorf("selects %s", workloads.LabelSelector)
	}
	marks, gates := map[string]string{fence.UnattachedLabel: "true", fence.GatedLabel: "true"}, []corev1.PodSchedulingGate{{Name: fence.SchedulingGate}}
	got, err := workloads.Transform(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web", UID: "1", ResourceVersion: "2", Annotations: map[string]string{"a": "b"},
			Labels: map[string]string{"app": "web", fence.UnattachedLabel: "true", fence.GatedLabel: "true"},
		},
		Spec:   corev1.PodSpec{NodeName: "node-1", SchedulingGates: gates, Containers: []corev1.Container{{Name: "web"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Message: "fine"},
	})
	want := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1", ResourceVersion: "2", Labels: marks},
		Spec:       corev1.PodSpec{NodeName: "node-1", SchedulingGates: gates}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("keeps %+v, %v", got, err)
	}
}

package reads

import (
	"context"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/reads/caches"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

func TestNodesJoinKubernetesAndTheStorageSystem(t *testing.T) {
	one := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{"a": "b", "node.longhorn.io/disable-v2-data-engine": "true"}, Annotations: map[string]string{"c": "d"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{
			NodeInfo:    corev1.NodeSystemInfo{BootID: "boot-1"},
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3800m"), corev1.ResourceMemory: resource.MustParse("1Gi"), "hugepages-2Mi": resource.MustParse("4Gi"), "hugepages-1Gi": resource.MustParse("1Gi")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue}, {Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "x"}},
		},
	}
	two := objects.Node("node-2", objects.Readiness(corev1.ConditionUnknown, time.Time{}))
	theirs := &longhorn.Node{ObjectMeta: here("node-1"), Spec: longhorn.NodeSpec{InstanceManagerCPURequest: 500},
		Status: longhorn.NodeStatus{Conditions: []longhorn.NodeCondition{{Type: "Ready", Status: "True"}}}}
	gone := &longhorn.Node{ObjectMeta: here("node-3")}
	want := catalog.Nodes{
		"node-1": {
			Ready: true, Storage: true, AllocatableMilliCPU: 3800, AllocatableHugepagesMiB: 4096, InstanceManagerMilliCPU: 500, DisabledV2: true,
			Labels: one.Labels, Taints: []corev1.Taint{{Key: "k", Value: "v", Effect: "NoSchedule"}},
		},
		"node-2": {},
	}
	slim, err := caches.SlimNode(one.DeepCopy())
	must.Do(t, err)
	for how, node := range map[string]client.Object{"whole": one, "slim": slim.(client.Object)} {
		r := readerOver(t, node, two, theirs, gone)
		if got, err := r.nodes(t.Context()); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got  %+v, %v\nwant %+v", how, got, err, want)
		}
		for name, want := range map[string]string{"node-1": "boot-1", "node-2": "boot-node-2", "node-3": ""} {
			got, err := r.BootID(t.Context(), name)
			must.Check(t, err == nil && got == want, "%s: boot of %s: got %q, %v", how, name, got, err)
		}
	}
}

func TestLowestOfTwoDefaultClassesCounts(t *testing.T) {
	class := func(name string, value int32, byDefault bool) client.Object {
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, GlobalDefault: byDefault}
	}
	names, byDefault, err := readerOver(t, class("c", 7, true), class("a", -3, true), class("b", -9, false)).priorityClasses(t.Context())
	must.True(t, err == nil && reflect.DeepEqual(names, map[string]bool{"a": true, "b": true, "c": true}) && byDefault == "a", "got %v, %q, %v", names, byDefault, err)
	if _, byDefault, _ := readerOver(t, class("c", 7, false)).priorityClasses(t.Context()); byDefault != "" {
		t.Fatalf("got %q", byDefault)
	}
}

func TestHugePagesChangeANode(t *testing.T) {
	was := &corev1.Node{Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"hugepages-2Mi": resource.MustParse("2Gi")}}}
	is := was.DeepCopy()
	must.True(t, !NodeChanged(was, is), "nothing has changed")
	is.Status.Allocatable["hugepages-2Mi"] = resource.MustParse("4Gi")
	must.True(t, NodeChanged(was, is) && NodeChanged(&corev1.Node{}, is), "a change of huge pages is not reported")
}

// Nil is not known, and blocks no setting.
func TestFactsHaveClassesAndNetworks(t *testing.T) {
	network := &unstructured.Unstructured{}
	network.SetGroupVersionKind(NetworkKind)
	network.SetNamespace("kube-system")
	network.SetName("one")
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}}
	scheme, err := NewScheme()
	must.Do(t, err)
	scheme.AddKnownTypeWithName(NetworkKind, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(NetworkKind.GroupVersion().WithKind(NetworkKind.Kind+"List"), &unstructured.UnstructuredList{})
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(class, network).Build()
	r := NewReader(objects.Longhorn, c, c)
	f, err := r.Facts(t.Context(), FactsOptions{})
	one := multus.Network{Namespace: "kube-system", Name: "one"}
	must.True(t, err == nil && f.Classes["high"] && f.Rollout.Networks[one], "got %+v, %v", f, err)

	must.Do(t, unstructured.SetNestedField(network.Object, "{not json", "spec", "config"))
	broken := fake.NewClientBuilder().WithScheme(scheme).WithObjects(network).Build()
	networks, err := Networks(t.Context(), broken)
	usable, there := networks[one]
	must.True(t, err == nil && there && !usable, "got %v, %v", networks, err)

	withoutMultus := interceptor.NewClient(c, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
		if _, networks := list.(*unstructured.UnstructuredList); networks {
			return &meta.NoKindMatchError{GroupKind: NetworkKind.GroupKind()}
		}
		return c.List(ctx, list, o...)
	}})
	f, err = NewReader(objects.Longhorn, withoutMultus, withoutMultus).Facts(t.Context(), FactsOptions{})
	must.True(t, err == nil && f.Rollout.Networks != nil && len(f.Rollout.Networks) == 0, "without Multus: got %+v, %v", f, err)
}

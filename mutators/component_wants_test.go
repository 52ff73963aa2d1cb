package mutators

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/settings"
	"github.com/fairlead-io/fairlead/storage"
)

func TestWantsAreThoseOfTheValuesInForce(t *testing.T) {
	nodes := settings.Nodes{"node-1": {AllocatableMilliCPU: 4000}}
	manager := settings.Component{Kind: settings.InstanceManager, Node: "node-1", Engine: settings.EngineV1}
	of := func(c settings.Component, own, system map[settings.Name]string) ComponentWants {
		return WantsOf(settings.Resolve(own, system, "longhorn"), system, c, nodes, storage.Longhorn())
	}
	asked := func(w ComponentWants) []settings.Trait { return slices.Sorted(maps.Keys(w.By)) }

	t.Run("nobody has set anything", func(t *testing.T) {
		if w := of(manager, nil, nil); len(w.By) != 0 {
			t.Fatalf("got %+v", w)
		}
	})
	t.Run("all that is asked of an instance manager", func(t *testing.T) {
		w := of(manager, map[settings.Name]string{"priority-class": "high"}, map[settings.Name]string{
			"taint-toleration": " a : NoSchedule ", "system-managed-components-node-selector": "a:b", "priority-class": "low",
			"guaranteed-instance-manager-cpu": "10", "storage-network": "kube-system/storage-net",
			// The storage system builds this.
			"instance-manager-pod-liveness-probe-timeout": "20",
		})
		want := []settings.Trait{settings.CPURequest, settings.NodeSelector, settings.PriorityClassName, settings.StorageAttachment, settings.Tolerations}
		if got := asked(w); !slices.Equal(got, want) {
			t.Fatalf("got %v", got)
		}
		if !slices.Equal(w.Tolerations, []corev1.Toleration{tolerateA}) || !maps.Equal(w.NodeSelector, map[string]string{"a": "b"}) ||
			w.PriorityClass != "high" || w.CPU.String() != "400m" || w.Network != storageNet || w.Interface != "lhnet1" || w.NodeLabels == nil {
			t.Fatalf("got %+v", w)
		}
	})
	t.Run("of the setting that wins, to be told", func(t *testing.T) {
		w := of(settings.Component{Kind: settings.InstanceManager, Node: "node-1", Engine: settings.EngineV2}, nil, map[settings.Name]string{
			"guaranteed-instance-manager-cpu": "10", "v2-data-engine-guaranteed-instance-manager-cpu": "1250",
		})
		if w.By[settings.CPURequest] != "v2-data-engine-guaranteed-instance-manager-cpu" || w.CPU.String() != "1250m" {
			t.Fatalf("got %+v", w)
		}
	})
	t.Run("of the one that the storage system has, of two names", func(t *testing.T) {
		w := of(settings.Component{Kind: settings.InstanceManager, Node: "node-1", Engine: settings.EngineV2},
			map[settings.Name]string{"v2-data-engine-guaranteed-instance-manager-cpu": "2000"}, map[settings.Name]string{"guaranteed-instance-manager-cpu": "10"})
		if w.By[settings.CPURequest] != "guaranteed-instance-manager-cpu" || w.CPU.String() != "400m" {
			t.Fatalf("got %+v", w)
		}
	})
	t.Run("a share manager has no storage network and no CPU of a setting", func(t *testing.T) {
		w := of(settings.Component{Kind: settings.ShareManager}, nil, map[settings.Name]string{
			"taint-toleration": "", "guaranteed-instance-manager-cpu": "10", "storage-network": "kube-system/storage-net",
		})
		if got := asked(w); !slices.Equal(got, []settings.Trait{settings.Tolerations}) || w.NodeLabels != nil {
			t.Fatalf("got %+v", w)
		}
	})
	t.Run("a value that is not well formed", func(t *testing.T) {
		if w := of(manager, nil, map[settings.Name]string{"taint-toleration": "a=b=c:NoSchedule"}); len(w.By) != 0 {
			t.Fatalf("got %+v", w)
		}
	})
}

// What the plan holds to be the storage system's alone to build is just what the
// webhook does not: else pods restart for nothing, or wait for nothing.
func TestTheWebhookBuildsWhatThePlanCountsOn(t *testing.T) {
	for _, d := range settings.All() {
		pod := settings.Component{Kind: settings.InstanceManager, Node: "node-1", Engine: settings.EngineV1}
		if d.Wants == nil {
			continue
		}
		text, asked := d.Wants(d.Default, pod, settings.Nodes{"node-1": {AllocatableMilliCPU: 4000}})
		if pod.Engine = settings.EngineV2; !asked {
			text, asked = d.Wants(d.Default, pod, settings.Nodes{"node-1": {AllocatableMilliCPU: 4000}})
		}
		if !asked {
			continue // it is of templates, which the controller writes itself
		}
		var w ComponentWants
		if err := w.read(d.Trait, text); (err != nil) != settings.BuiltBySystem(d.Trait) {
			t.Errorf("%s of %s: %v", d.Trait, d.Name, err)
		}
	}
}

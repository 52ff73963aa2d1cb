package cluster

import (
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

func clientDaemonSet(change func(*appsv1.DaemonSet)) *appsv1.DaemonSet {
	ds := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "longhorn-system", Name: "longhorn-csi-plugin", Generation: 4,
			Annotations: map[string]string{appsv1.DeprecatedTemplateGeneration: "3"},
		},
		Spec: appsv1.DaemonSetSpec{UpdateStrategy: appsv1.DaemonSetUpdateStrategy{
			Type:          appsv1.RollingUpdateDaemonSetStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: ptr.To(intstr.FromString("20%"))},
		}},
		Status: appsv1.DaemonSetStatus{ObservedGeneration: 4, DesiredNumberScheduled: 11},
	}
	change(ds)
	return ds
}

func TestDaemonSetFacts(t *testing.T) {
	base := rollout.DaemonSet{Name: "longhorn-csi-plugin", Found: true, Observed: true, Revision: "3", Wanted: 11, MaxUnavailable: 3}
	with := func(change func(*rollout.DaemonSet)) rollout.DaemonSet {
		facts := base
		change(&facts)
		return facts
	}
	annotate := func(ds *appsv1.DaemonSet, key, value string) {
		ds.Spec.Template.Annotations = map[string]string{key: value}
	}
	for name, test := range map[string]struct {
		change func(*appsv1.DaemonSet)
		want   rollout.DaemonSet
	}{
		"at rest": {func(*appsv1.DaemonSet) {}, base},
		"on a network": {
			func(ds *appsv1.DaemonSet) { annotate(ds, storage.NetworksAnnotation, "x@net1,kube-system/a@lhnet1") },
			with(func(f *rollout.DaemonSet) {
				f.Network = storage.Attachment{Network: storage.Network{Namespace: "kube-system", Name: "a"}, Interface: "lhnet1"}
				f.Networks = []storage.Attachment{f.Network}
			}),
		},
		"on two networks": {
			func(ds *appsv1.DaemonSet) {
				annotate(ds, storage.NetworksAnnotation, "kube-system/b@lhnet2,kube-system/a@lhnet1")
			},
			with(func(f *rollout.DaemonSet) {
				f.Network = storage.Attachment{Network: storage.Network{Namespace: "kube-system", Name: "b"}, Interface: "lhnet2"}
				f.Networks = []storage.Attachment{f.Network, {Network: storage.Network{Namespace: "kube-system", Name: "a"}, Interface: "lhnet1"}}
			}),
		},
		"unreadable": {
			func(ds *appsv1.DaemonSet) { annotate(ds, storage.NetworksAnnotation, "[{") },
			with(func(f *rollout.DaemonSet) { f.Unreadable = true }),
		},
		"opted out": {
			func(ds *appsv1.DaemonSet) { annotate(ds, storage.OptOutAnnotation, "true") },
			with(func(f *rollout.DaemonSet) { f.OptOut = true }),
		},
		"on the host network": {
			func(ds *appsv1.DaemonSet) { ds.Spec.Template.Spec = corev1.PodSpec{HostNetwork: true} },
			with(func(f *rollout.DaemonSet) { f.HostNetwork = true }),
		},
		"not observed": {
			func(ds *appsv1.DaemonSet) { ds.Status.ObservedGeneration = 3 },
			with(func(f *rollout.DaemonSet) { f.Observed = false }),
		},
		"paused, with the budget of its own strategy": {
			func(ds *appsv1.DaemonSet) {
				ds.Annotations[StrategyAnnotation] = `{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":2}}`
				ds.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
			},
			with(func(f *rollout.DaemonSet) { f.Paused, f.MaxUnavailable = true, 2 }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readerOver(t, clientDaemonSet(test.change)).DaemonSet(t.Context())
			if err != nil || !reflect.DeepEqual(got, test.want) {
				t.Fatalf("got  %+v, %v\nwant %+v", got, err, test.want)
			}
		})
	}
}

func TestNoDaemonSet(t *testing.T) {
	got, err := readerOver(t).DaemonSet(t.Context())
	if want := (rollout.DaemonSet{Name: "longhorn-csi-plugin"}); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v", got, err)
	}
}

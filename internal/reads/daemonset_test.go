package reads

import (
	"reflect"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
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

func TestPodsShowTheHashOfTheTemplate(t *testing.T) {
	pods := func(templates ...string) (pods []daemonPod) {
		for _, t := range templates {
			generation, hash, _ := strings.Cut(t, "/")
			pods = append(pods, daemonPod{generation: generation, hash: hash, created: time.Unix(int64(len(pods)), 0)}) // the last one is the newest
		}
		return pods
	}
	for name, test := range map[string]struct {
		pods     []daemonPod
		updated  int32
		observed int64
		want     string
		change   func(*appsv1.DaemonSetStatus)
	}{
		"of a pod":                        {pods: pods("2/old", "3/new"), updated: 1, observed: 4, want: "new"},
		"of a pod, not counted yet":       {pods: pods("2/old", "3/new"), updated: 0, observed: 3, want: "new"},
		"changed back":                    {pods: pods("1/first", "1/first"), updated: 2, observed: 4, want: "first"},
		"changed back, not observed":      {pods: pods("1/first", "1/first"), updated: 2, observed: 3, want: ""},
		"changed back, one pod is newer":  {pods: pods("1/first", "2/second"), updated: 1, observed: 4, want: ""},
		"changed, no pod follows":         {pods: pods("1/first", "1/first"), updated: 0, observed: 4, want: ""},
		"the status counts a pod too few": {pods: pods("1/first", "2/second"), updated: 2, observed: 4, want: ""},
		"recreated, one pod follows":      {pods: pods("3/theirs", "3/new"), updated: 1, observed: 4, want: "new"},
		"recreated, no pod follows":       {pods: pods("3/theirs", "3/theirs"), updated: 0, observed: 4, want: "", change: func(s *appsv1.DaemonSetStatus) { s.CurrentNumberScheduled = 2 }},
		"no pods":                         {pods: nil, observed: 4},
		"no pod belongs on its node":      {pods: pods("1/first", "1/first"), observed: 4, change: func(s *appsv1.DaemonSetStatus) { s.DesiredNumberScheduled = 0 }},
		"a pod does not belong":           {pods: pods("1/first", "1/first"), updated: 2, observed: 4, change: func(s *appsv1.DaemonSetStatus) { s.NumberMisscheduled = 1 }},
	} {
		ds := clientDaemonSet(func(ds *appsv1.DaemonSet) {
			ds.Status = appsv1.DaemonSetStatus{ObservedGeneration: test.observed, DesiredNumberScheduled: 2, UpdatedNumberScheduled: test.updated}
			if test.change != nil {
				test.change(&ds.Status)
			}
		})
		must.Equal(t, templateHash(ds, test.pods), test.want, "%s", name)
	}
}

func TestDaemonSetFacts(t *testing.T) {
	annotated := func(key, value string) func(*appsv1.DaemonSet) {
		return func(ds *appsv1.DaemonSet) { ds.Spec.Template.Annotations = map[string]string{key: value} }
	}
	paused := func(ds *appsv1.DaemonSet) {
		ds.Annotations[rwx.StrategyAnnotation] = `{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":2}}`
		ds.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
	}
	a, b := objects.Network("a", "lhnet1"), objects.Network("b", "lhnet2")
	for name, test := range map[string]struct {
		change func(*appsv1.DaemonSet)
		want   func(*rollout.DaemonSet)
	}{
		"default":                 {func(*appsv1.DaemonSet) {}, func(*rollout.DaemonSet) {}},
		"on a network":            {annotated(multus.NetworksAnnotation, "x@net1,kube-system/a@lhnet1"), func(f *rollout.DaemonSet) { f.Network, f.Networks = a, []multus.Attachment{a} }},
		"on two networks":         {annotated(multus.NetworksAnnotation, "kube-system/b@lhnet2,kube-system/a@lhnet1"), func(f *rollout.DaemonSet) { f.Network, f.Networks = b, []multus.Attachment{b, a} }},
		"unreadable":              {annotated(multus.NetworksAnnotation, "[{"), func(f *rollout.DaemonSet) { f.Unreadable = true }},
		"opted out":               {annotated(rwx.OptOutAnnotation, "true"), func(f *rollout.DaemonSet) { f.OptOut = true }},
		"on the host network":     {func(ds *appsv1.DaemonSet) { ds.Spec.Template.Spec.HostNetwork = true }, func(f *rollout.DaemonSet) { f.HostNetwork = true }},
		"not observed":            {func(ds *appsv1.DaemonSet) { ds.Status.ObservedGeneration = 3 }, func(f *rollout.DaemonSet) { f.Observed = false }},
		"paused keeps its budget": {paused, func(f *rollout.DaemonSet) { f.Paused, f.MaxUnavailable = true, 2 }},
	} {
		t.Run(name, func(t *testing.T) {
			want := rollout.DaemonSet{Name: "longhorn-csi-plugin", Found: true, Version: "999", Observed: true, Wanted: 11, MaxUnavailable: 3}
			test.want(&want)
			facts, _, err := readerOver(t, clientDaemonSet(test.change)).Rollout(t.Context(), time.Time{})
			must.True(t, err == nil && reflect.DeepEqual(facts.DaemonSet, want), "got  %+v, %v\nwant %+v", facts.DaemonSet, err, want)
		})
	}
	if got, _, err := readerOver(t).Rollout(t.Context(), time.Time{}); err != nil || !reflect.DeepEqual(got.DaemonSet, rollout.DaemonSet{Name: "longhorn-csi-plugin"}) {
		t.Fatalf("without a DaemonSet: got %+v, %v", got, err)
	}
}

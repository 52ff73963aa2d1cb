package plan

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/cli/clitest"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

func readPlan(t *testing.T, p cli.Target, set ...string) View {
	t.Helper()
	view, err := Read(t.Context(), p, changesFor(t, set, nil), time.Now())
	must.Do(t, err)
	return view
}

func TestPlanReadsTheCluster(t *testing.T) {
	p := clitest.Target(t, nil, objects.LonghornSetting("priority-class", "longhorn-critical"), objects.LonghornSetting("v2-data-engine", "false"))
	for _, s := range readPlan(t, p, "v2-data-engine=true", "priority-class=").Settings {
		if s.Name == "priority-class" && (s.Now.Value != "longhorn-critical" || s.Then.Value != "" || !s.Changed) || s.Name == "v2-data-engine" && s.Then.Source != "longhorn" {
			t.Errorf("got %+v", s)
		}
	}
}

func TestPlanSetsValuesInTheHomeOfTheSetting(t *testing.T) {
	high := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}}
	p := clitest.Target(t, nil, high, objects.LonghornSetting("priority-class", ""), objects.LonghornSetting("taint-toleration", ""))
	want := map[string]string{"taint-toleration": "longhorn applied", "priority-class": "longhorn applied", "endpoint-network-for-rwx-volume": "fairlead waits"}
	for _, s := range readPlan(t, p, "taint-toleration=a=b:NoSchedule", "priority-class=high", "endpoint-network-for-rwx-volume=kube-system/a").Settings {
		if s.Changed {
			must.Equal(t, s.Then.Source+" "+s.Applies, want[s.Name], "%s (%s)", s.Name, s.Reason)
		}
	}
}

func TestPlanWarnsOfValueThatLonghornsNextStartUndoes(t *testing.T) {
	defaults := &corev1.ConfigMap{ObjectMeta: objects.Here("longhorn-default-setting"), Data: map[string]string{"default-setting.yaml": "guaranteed-instance-manager-cpu: 20"}}
	p := clitest.Target(t, nil, defaults, objects.LonghornSetting("guaranteed-instance-manager-cpu", "12"))
	view := readPlan(t, p, "guaranteed-instance-manager-cpu=15")
	must.True(t, strings.Contains(fmt.Sprintf("%+v", view), `sets guaranteed-instance-manager-cpu to "20" again`), "got %+v", view)
}

// A malformed network leaves out facts that the plan of its correction needs.
func TestPlanCorrectsMalformedNetwork(t *testing.T) {
	p := clitest.Target(t, nil, objects.Setting("endpoint-network-for-rwx-volume", "malformed"))
	must.Equal(t, readPlan(t, p).Outcome, outcomeInvalid)
	must.Equal(t, readPlan(t, p, "endpoint-network-for-rwx-volume=").Outcome, outcomeNothing)
}

func TestPlanNamesTheMissingRight(t *testing.T) {
	for _, test := range []struct{ cause, want string }{
		{`User "alice" cannot list resource "volumes" in API group "longhorn.io" in the namespace "longhorn-system"`, "you may not list volumes.longhorn.io in namespace longhorn-system; ClusterRole fairlead-planner"},
		{`User "alice" cannot list resource "nodes" in API group "" at the cluster scope`, "you may not list nodes in the whole cluster; "},
		{"unknown reason", "listing volumes: "},
	} {
		p := clitest.Target(t, func(list client.ObjectList) error {
			if _, ok := list.(*longhorn.VolumeList); !ok {
				return nil
			}
			return apierrors.NewForbidden(schema.GroupResource{Group: "longhorn.io", Resource: "volumes"}, "", errors.New(test.cause))
		})
		_, err := Read(t.Context(), p, nil, time.Now())
		if err = cli.Explain(err); err == nil || !strings.HasPrefix(err.Error(), test.want) || !apierrors.IsForbidden(err) {
			t.Errorf("got %v", err)
		}
	}
}

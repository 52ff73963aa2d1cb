package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "github.com/fairlead-io/fairlead/api/rest/v1"
	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
	"github.com/fairlead-io/fairlead/internal/config"
)

// placeWith is a cluster with these objects.
func placeWith(t *testing.T, refuse func(client.ObjectList) error, objects ...client.Object) place {
	t.Helper()
	scheme, err := cluster.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Load("")
	if err != nil {
		t.Fatal(err)
	}
	stored := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if refuse != nil {
				if err := refuse(list); err != nil {
					return err
				}
			}
			return c.List(ctx, list, options...)
		},
	}).Build()
	return place{c.Profiles[0], c, "", cluster.NewReader(c.Profiles[0].Storage(), stored, stored)}
}

func waitingSetting() *v1alpha1.Setting {
	value := "longhorn-critical"
	s := &v1alpha1.Setting{Value: &value}
	s.Namespace, s.Name = "longhorn-system", "priority-class"
	s.Status = v1alpha1.SettingStatus{
		EffectiveValue: value, Source: "fairlead",
		Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionApplied, Status: metav1.ConditionFalse, Reason: "Waiting", Message: "will be applied when these volumes are detached: pvc-a (node-2, pod default/web-0). Then 3 instance managers restart one by one",
			LastTransitionTime: metav1.NewTime(time.Now().Add(-330 * time.Minute)),
		}},
		Blockers: []v1alpha1.Blocker{{
			Kind: "Volume", Name: "pvc-a", Nodes: []string{"node-2"}, Workloads: []string{"default/web-0"},
			Message: "volume is attached: stop the workloads that use it, so that it is detached",
		}},
	}
	return s
}

func systemSetting(name, value string) *longhorn.Setting {
	s := &longhorn.Setting{Value: value}
	s.Namespace, s.Name = "longhorn-system", name
	return s
}

func TestSettingsAreShown(t *testing.T) {
	waits := waitingSetting() // as it is beside Longhorn: only its own value is applied there
	waits.Value, waits.Status.Source = nil, "longhorn"
	p := placeWith(t, nil, waits, systemSetting("priority-class", "longhorn-critical"), systemSetting("v2-data-engine", "true"))
	for _, test := range []struct {
		name, output string
		args         []string
	}{
		{"settings.txt", outputTable, nil},
		{"settings-one.txt", outputTable, []string{"priority-class"}},
		{"settings-one.json", outputJSON, []string{"auto-delete-pod-when-volume-detached-unexpectedly"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out strings.Builder
			if err := showSettings(t.Context(), &out, p, test.output, test.args); err != nil {
				t.Fatal(err)
			}
			golden(t, test.name, out.String())
		})
	}
	var out strings.Builder
	if err := showSettings(t.Context(), &out, p, outputJSON, nil); err != nil {
		t.Fatal(err)
	}
	var list v1.SettingList
	if err := json.Unmarshal([]byte(out.String()), &list); err != nil || len(list.Data) < 20 {
		t.Errorf("got %d settings, %v", len(list.Data), err)
	}
	if err := showSettings(t.Context(), &out, p, outputTable, []string{"nobody"}); !errors.Is(err, errUnknownSetting) {
		t.Errorf("got %v", err)
	}
}

func TestUnknownSettingsAreNamed(t *testing.T) {
	p := placeWith(t, nil, systemSetting("e-of-1.13", ""), systemSetting("d-of-1.13", ""), systemSetting("c-of-1.13", ""), systemSetting("b-of-1.13", ""), systemSetting("log-level", "Info"))
	var out, document strings.Builder
	if err := showSettings(t.Context(), &out, p, outputTable, nil); err != nil ||
		!strings.HasSuffix(out.String(), "\nlonghorn has settings that this Fairlead does not know, perhaps of the danger zone: b-of-1.13, c-of-1.13, d-of-1.13, and 1 more. Upgrade Fairlead: until then longhorn alone judges and applies them\n") {
		t.Errorf("got %v\n%s", err, out.String())
	}
	if err := showSettings(t.Context(), &document, p, outputJSON, nil); err != nil {
		t.Fatal(err)
	}
	var list v1.SettingList
	if err := json.Unmarshal([]byte(document.String()), &list); err != nil || !slices.Equal(list.Unknown, []string{"b-of-1.13", "c-of-1.13", "d-of-1.13", "e-of-1.13"}) {
		t.Errorf("got %q, %v", list.Unknown, err)
	}
	document.Reset()
	if err := showSettings(t.Context(), &document, placeWith(t, nil), outputJSON, nil); err != nil || !strings.Contains(document.String(), `"unknown": []`) {
		t.Errorf("without any: %v", err)
	}
}

// What the documentation shows is what is printed.
func TestTheDocumentationShowsRealOutput(t *testing.T) {
	docs, err := os.ReadFile("../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"plan-attached.txt", "settings-one.txt"} {
		output, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(docs), string(output)) {
			t.Errorf("docs/settings.md does not show %s:\n%s", name, output)
		}
	}
}

func TestAPlanReadsTheCluster(t *testing.T) {
	p := placeWith(t, nil, systemSetting("priority-class", "longhorn-critical"), systemSetting("v2-data-engine", "false"))
	c, err := parseChanges([]string{"v2-data-engine=true", "priority-class="}, nil)
	if err != nil {
		t.Fatal(err)
	}
	view, err := p.plan(t.Context(), c, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range view.Settings {
		if s.Name == "priority-class" && (s.Now.Value != "longhorn-critical" || s.Then.Value != "" || !s.Changed) || s.Name == "v2-data-engine" && s.Then.Source != "longhorn" {
			t.Errorf("got %+v", s)
		}
	}
}

// A plan sets each value in the setting's home.
func TestAPlanSetsWhereItCounts(t *testing.T) {
	high := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}}
	p := placeWith(t, nil, high, systemSetting("priority-class", ""), systemSetting("taint-toleration", ""))
	c, err := parseChanges([]string{"taint-toleration=a=b:NoSchedule", "priority-class=high", "endpoint-network-for-rwx-volume=kube-system/a"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	view, err := p.plan(t.Context(), c, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"taint-toleration": "longhorn applied", "priority-class": "longhorn applied", "endpoint-network-for-rwx-volume": "fairlead waits"}
	for _, s := range view.Settings {
		if got := s.Then.Source + " " + s.Applies; s.Changed && got != want[s.Name] {
			t.Errorf("%s: %s: %s", s.Name, got, s.Reason)
		}
	}
}

// A value that was malformed leaves facts out, which are needed when it is put right.
func TestAPlanThatPutsANetworkRight(t *testing.T) {
	malformed := "nowhere"
	s := &v1alpha1.Setting{Value: &malformed}
	s.Namespace, s.Name = "longhorn-system", "endpoint-network-for-rwx-volume"
	p := placeWith(t, nil, s)
	c, err := parseChanges([]string{"endpoint-network-for-rwx-volume="}, nil)
	if err != nil {
		t.Fatal(err)
	}
	view, err := p.plan(t.Context(), c, time.Now())
	if err != nil || view.Outcome != outcomeNothing {
		t.Errorf("got %s, %v", view.Outcome, err)
	}
	if view, err = p.plan(t.Context(), nil, time.Now()); err != nil || view.Outcome != outcomeInvalid {
		t.Errorf("as it is: got %s, %v", view.Outcome, err)
	}
}

func TestWhatIsForbiddenIsNamed(t *testing.T) {
	for _, test := range []struct{ cause, says string }{
		{`User "alice" cannot list resource "volumes" in API group "longhorn.io" in the namespace "longhorn-system"`, "you may not list volumes.longhorn.io in namespace longhorn-system; ClusterRole fairlead-planner"},
		{`User "alice" cannot list resource "nodes" in API group "" at the cluster scope`, "you may not list nodes in the whole cluster; "},
		{"for reasons of its own", "listing volumes: "},
	} {
		p := placeWith(t, func(list client.ObjectList) error {
			if _, ok := list.(*longhorn.VolumeList); !ok {
				return nil
			}
			return apierrors.NewForbidden(schema.GroupResource{Group: "longhorn.io", Resource: "volumes"}, "", errors.New(test.cause))
		})
		_, err := p.plan(t.Context(), nil, time.Now())
		if err = explain(err); err == nil || !strings.HasPrefix(err.Error(), test.says) || !apierrors.IsForbidden(err) {
			t.Errorf("got %v", err)
		}
	}
}

func TestProfilesAndNamespacesArePicked(t *testing.T) {
	c, err := config.Load("")
	if err != nil {
		t.Fatal(err)
	}
	if p, err := (&clientOptions{namespace: "storage"}).pick(c, ""); err != nil || p.Name != "longhorn" || p.Storage().Namespace != "storage" {
		t.Errorf("got %+v, %v", p, err)
	}
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/plan"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// threeNodes: each has an instance manager, that of node-2 serves an attached volume.
func threeNodes() plan.Facts {
	f := plan.Facts{
		Profile: storage.Longhorn(), Told: map[catalog.Name]plan.Told{}, Nodes: catalog.Nodes{}, Now: time.Unix(0, 0),
		Volumes: []storage.Volume{
			{Name: "pvc-a", Attached: true, Engine: catalog.EngineV1, Nodes: []string{"node-2"}, Workloads: []string{"default/web-0"}},
			{Name: "pvc-b", Engine: catalog.EngineV1},
		},
		Components: []catalog.Component{
			{Kind: catalog.Deployment, Name: "csi-attacher", Ready: true, Updated: 3, Total: 3, Built: map[catalog.Trait]string{catalog.PriorityClassName: ""}},
		},
	}
	f = inLonghorn(f, catalog.PriorityClass, "")
	f = inLonghorn(f, catalog.GuaranteedCPU, "12")
	f = inLonghorn(f, catalog.StorageNetwork, "")
	f = inLonghorn(f, catalog.V1DataEngine, "true")
	f = inLonghorn(f, catalog.DisableSnapshotPurge, "false")
	for i := 1; i <= 3; i++ {
		node := fmt.Sprintf("node-%d", i)
		f.Nodes[node] = catalog.Node{Ready: true, Storage: true, AllocatableMilliCPU: 4000}
		im := catalog.Component{
			Kind: catalog.InstanceManager, Name: fmt.Sprintf("instance-manager-%d", i), Node: node, Engine: catalog.EngineV1, Ready: true,
			Built: map[catalog.Trait]string{catalog.PriorityClassName: "", catalog.CPURequest: "480m"},
		}
		if node == "node-2" {
			im.Uses = []string{"pvc-a-e-0", "pvc-a-r-1"}
		}
		f.Components = append(f.Components, im)
	}
	return f
}

// inLonghorn are the facts with a value of settings.longhorn.io.
func inLonghorn(f plan.Facts, name catalog.Name, value string) plan.Facts {
	system := map[catalog.Name]string{name: value}
	for n, v := range f.SystemValues {
		if n != name {
			system[n] = v
		}
	}
	f.SystemValues = system
	f.Values = catalog.Resolve(f.OwnValues, system, f.Profile.Name)
	return f
}

func planFor(t *testing.T, f plan.Facts, set, unset []string) planView {
	t.Helper()
	c, err := parseChanges(set, unset)
	if err != nil {
		t.Fatal(err)
	}
	return viewOf(f, c)
}

// golden compares with a file of testdata; UPDATE=1 writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := "testdata/" + name
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
	}
}

func TestPlans(t *testing.T) {
	withStarting := threeNodes()
	withStarting.Components[1].Terminating = true
	withStarting.Volumes[0].Attached = false
	withStarting.Components[2].Uses = nil
	rolledOut := threeNodes()
	rolledOut.OwnValues = map[catalog.Name]string{catalog.EngineImageProbePeriod: "5"}
	rolledOut.Values = catalog.Resolve(rolledOut.OwnValues, rolledOut.SystemValues, "longhorn")
	malformed := inLonghorn(threeNodes(), catalog.PriorityClass, "Not A Name")
	for _, test := range []struct {
		name       string
		facts      plan.Facts
		set, unset []string
		outcome    string
		applies    string
	}{
		{"attached", threeNodes(), []string{"priority-class=longhorn-critical"}, nil, outcomeWaits, appliesPartly},
		{"two", threeNodes(), []string{"guaranteed-instance-manager-cpu=20", "priority-class=longhorn-critical"}, nil, outcomeWaits, appliesPartly},
		{"in-turn", withStarting, []string{"priority-class=longhorn-critical"}, nil, outcomeWaits, appliesPartly},
		{"as-it-is", threeNodes(), []string{"guaranteed-instance-manager-cpu=12"}, nil, outcomeNothing, appliesDone},
		{"taken-away", rolledOut, nil, []string{"engine-image-pod-liveness-probe-period"}, outcomeNothing, appliesDone},
		{"at-once", threeNodes(), []string{"auto-delete-pod-when-volume-detached-unexpectedly=false"}, nil, outcomeNow, appliesNow},
		{"in-force", threeNodes(), nil, nil, outcomeNothing, ""},
		{"malformed", malformed, nil, nil, outcomeInvalid, ""},
		{"corrected", malformed, []string{"priority-class="}, nil, outcomeNothing, appliesDone},
	} {
		t.Run(test.name, func(t *testing.T) {
			view := planFor(t, test.facts, test.set, test.unset)
			var out strings.Builder
			err := show(&out, view, outputTable)
			golden(t, "plan-"+test.name+".txt", out.String())
			var code exitCode
			if waits := errors.As(err, &code); view.Outcome != test.outcome || waits != (test.outcome == outcomeWaits) || waits && code != 2 ||
				errors.Is(err, errInvalid) != (test.outcome == outcomeInvalid) {
				t.Errorf("outcome %s, %v", view.Outcome, err)
			}
			for _, s := range view.Settings {
				if s.Changed && s.Applies != test.applies && test.name != "two" {
					t.Errorf("%s: %s", s.Name, s.Applies)
				}
			}
		})
	}
}

func TestPlanAsJSON(t *testing.T) {
	var out strings.Builder
	view := planFor(t, threeNodes(), []string{"priority-class=longhorn-critical"}, nil)
	view.Settings = view.Settings[3:6] // the rest is alike
	if err := show(&out, view, outputJSON); !errors.Is(err, exitWaits) {
		t.Errorf("got %v", err)
	}
	golden(t, "plan.json", out.String())
	var again planView
	if err := json.Unmarshal([]byte(out.String()), &again); err != nil {
		t.Error(err)
	}
}

func TestNothingChangesWhenNothingIsThere(t *testing.T) {
	var out strings.Builder
	view := planFor(t, plan.Facts{Profile: storage.Longhorn(), Values: catalog.Resolve(nil, nil, "longhorn")}, nil, nil)
	if err := writeJSON(&out, view); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "null") {
		t.Errorf("got %s", out.String())
	}
}

func TestLongListsAreCutInTheTableOnly(t *testing.T) {
	f := threeNodes()
	for i := range 100 {
		f.Volumes = append(f.Volumes, storage.Volume{Name: fmt.Sprintf("pvc-%03d", i), Attached: true, Engine: catalog.EngineV1})
		f.Components = append(f.Components, catalog.Component{
			Kind: catalog.BackingImageManager, Name: fmt.Sprintf("backing-image-manager-%03d", i), Ready: true,
			Built: map[catalog.Trait]string{catalog.PriorityClassName: ""},
		})
	}
	view := planFor(t, f, []string{"priority-class=longhorn-critical"}, nil)
	if len(view.Works) != 104 || len(view.Blockers) != 101 {
		t.Fatalf("got %d works, %d blockers", len(view.Works), len(view.Blockers))
	}
	var out strings.Builder
	if err := writePlan(&out, view); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nand 84 more; -o json has all\n", "\nand 81 more; -o json has all\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

func TestSettingThatWaitsAnywayIsNamed(t *testing.T) {
	f := inLonghorn(threeNodes(), catalog.PriorityClass, "urgent")
	var out strings.Builder
	if err := writePlan(&out, planFor(t, f, []string{"guaranteed-instance-manager-cpu=20"}, nil)); err != nil ||
		!strings.Contains(out.String(), "\nNot applied yet, with or without the change: priority-class\n") {
		t.Errorf("got %v\n%s", err, out.String())
	}
}

func TestNetworkOfSharedVolumes(t *testing.T) {
	f := threeNodes()
	f.Rollout = rollout.Rollout{
		DaemonSet: rollout.DaemonSet{Name: "longhorn-csi-plugin", Found: true, Observed: true, Wanted: 3, MaxUnavailable: 1, Revision: "1"},
		Volumes:   []storage.Volume{{Name: "pvc-rwx", Shared: true, Attached: true, Nodes: []string{"node-1"}, Workloads: []string{"default/web-1"}}},
	}
	for i := 1; i <= 3; i++ {
		f.Rollout.Clients = append(f.Rollout.Clients, storage.Client{Pod: fmt.Sprintf("csi-%d", i), Node: fmt.Sprintf("node-%d", i), Ready: true, Revision: "1"})
	}
	view := planFor(t, f, []string{"endpoint-network-for-rwx-volume=kube-system/storage-net"}, nil)
	var out strings.Builder
	if err := show(&out, view, outputTable); !errors.Is(err, exitWaits) {
		t.Errorf("got %v", err)
	}
	golden(t, "plan-network.txt", out.String())

	f.Rollout.Gate = rollout.GateNode
	out.Reset()
	if err := show(&out, planFor(t, f, []string{"endpoint-network-for-rwx-volume=kube-system/storage-net"}, nil), outputTable); err != nil {
		t.Errorf("got %v", err)
	}
	golden(t, "plan-network-by-node.txt", out.String())
}

// Regression: the setting that was changed was left out where it said another text
// than the roll-out: that it waits for volumes, of which the RWX ones are some.
func TestTheNetworkIsMovedForAllThatChooseIt(t *testing.T) {
	f := threeNodes()
	f = inLonghorn(f, catalog.StorageNetworkForRWX, "true")
	rolled := ""
	f.Told[catalog.EndpointNetworkForRWX] = plan.Told{Rolled: &rolled, Applied: true}
	f.Volumes = []storage.Volume{{Name: "pvc-rwx", Shared: true, Attached: true, Engine: catalog.EngineV1, Nodes: []string{"node-2"}}}
	for i := range f.Components {
		if f.Components[i].Kind == catalog.InstanceManager {
			f.Components[i].Built[catalog.StorageAttachment] = ""
		}
	}
	f.Rollout = rollout.Rollout{DaemonSet: rollout.DaemonSet{Name: "longhorn-csi-plugin", Found: true, Observed: true}, Volumes: f.Volumes}
	f.Existing.Networks = rollout.NetworksThere([]storage.Network{{Namespace: "kube-system", Name: "storage-net"}})
	view := planFor(t, f, []string{"storage-network=kube-system/storage-net"}, nil)
	var out strings.Builder
	if err := writePlan(&out, view); err != nil || !strings.Contains(out.String(), "Applied now, and to be rolled out again after the change: storage-network-for-rwx-volume-enabled\n") ||
		strings.Contains(out.String(), "Not applied yet") {
		t.Errorf("got %v\n%s", err, out.String())
	}
	for _, w := range view.Works {
		if w.Action == moveAction {
			if !slices.Equal(w.Settings, []string{"storage-network", "storage-network-for-rwx-volume-enabled"}) || w.WaitsFor != "1 RWX volume attached: pvc-rwx" {
				t.Errorf("got %+v", w)
			}
			return
		}
	}
	t.Error("the network is not moved")
}

func TestRefusedChanges(t *testing.T) {
	for _, test := range []struct {
		name       string
		set, unset []string
		want       error
		says       string
	}{
		{"unknown", []string{"priority-klass=x"}, nil, errUnknownSetting, "\n  priority-class\n"},
		{"unknown, taken away", nil, []string{"priority-klass"}, errUnknownSetting, "--unset"},
		{"no value", []string{"priority-class"}, nil, errNotNameValue, "priority-class"},
		{"twice", []string{"priority-class=a", "priority-class=b"}, nil, errTwice, ""},
		{"both ways", []string{"priority-class=a"}, []string{"priority-class"}, errTwice, ""},
		{"malformed", []string{"v2-data-engine=yes"}, nil, nil, `value "yes" must be "true" or "false"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := parseChanges(test.set, test.unset)
			if err == nil || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestValuesMayHaveEqualSignsAndCommas(t *testing.T) {
	c, err := parseChanges([]string{`taint-toleration=key=value:NoSchedule`}, nil)
	if err != nil || *c[catalog.TaintToleration] != "key=value:NoSchedule" {
		t.Errorf("got %v, %v", c, err)
	}
}

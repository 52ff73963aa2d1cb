package plan

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/cli/clitest"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/planner"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// clusterFacts have three nodes with an instance manager each. The one on node-2 serves an attached volume.
func clusterFacts() planner.Facts {
	f := planner.Facts{
		Names: longhorn.DefaultNames(), Reported: map[catalog.Name]planner.Reported{}, Nodes: catalog.Nodes{}, Now: time.Unix(0, 0),
		Rollout: rollout.Rollout{Volumes: []rwx.Volume{
			{Name: "pvc-a", Attached: true, Engine: catalog.EngineV1, Nodes: []string{"node-2"}, Workloads: []string{"default/web-0"}, Owners: []string{"default/statefulset/web"}},
			{Name: "pvc-b", Engine: catalog.EngineV1},
		}},
		Components: []catalog.Component{
			{Kind: catalog.Deployment, Name: "csi-attacher", Ready: true, Updated: 3, Total: 3, Built: map[catalog.Trait]string{catalog.PriorityClassName: ""}},
		},
	}
	for name, value := range map[catalog.Name]string{
		catalog.PriorityClass: "", catalog.GuaranteedCPU: "12", catalog.StorageNetwork: "", catalog.V1DataEngine: "true", catalog.DisableSnapshotPurge: "false",
	} {
		f = inLonghorn(f, name, value)
	}
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

// inLonghorn returns the facts with a value in settings.longhorn.io.
func inLonghorn(f planner.Facts, name catalog.Name, value string) planner.Facts {
	system := map[catalog.Name]string{}
	maps.Copy(system, f.SystemValues)
	system[name] = value
	f.SystemValues = system
	f.Values = catalog.Resolve(f.OwnValues, system)
	return f
}

func changesFor(t *testing.T, set, unset []string) Changes {
	t.Helper()
	c, err := parseChanges(set, unset)
	must.Do(t, err)
	return c
}

func planFor(t *testing.T, f planner.Facts, set ...string) View {
	t.Helper()
	return viewOf(f, changesFor(t, set, nil))
}

func output(t *testing.T, view View, format string, want error) string {
	t.Helper()
	return clitest.Output(t, want, func(out io.Writer) error { return show(out, view, format) })
}

func TestPlans(t *testing.T) {
	starting := clusterFacts()
	starting.Components[1].Terminating = true
	starting.Rollout.Volumes[0].Attached = false
	starting.Components[2].Uses = nil
	rolledOut := clusterFacts()
	rolledOut.OwnValues = map[catalog.Name]string{catalog.EngineImageProbePeriod: "5"}
	rolledOut.Values = catalog.Resolve(rolledOut.OwnValues, rolledOut.SystemValues)
	malformed := inLonghorn(clusterFacts(), catalog.PriorityClass, "Not A Name")
	networkGone := inLonghorn(clusterFacts(), catalog.StorageNetwork, "kube-system/storage-net")
	networkGone.Rollout.Networks = map[multus.Network]bool{}
	wants := map[string]error{outcomeWaits: cli.ExitWaits, outcomeInvalid: errInvalid}
	for _, test := range []struct {
		name       string
		facts      planner.Facts
		set, unset []string
		outcome    string
		applies    string
	}{
		{"attached", clusterFacts(), []string{"priority-class=longhorn-critical"}, nil, outcomeWaits, appliesPartly},
		{"two", clusterFacts(), []string{"guaranteed-instance-manager-cpu=20", "priority-class=longhorn-critical"}, nil, outcomeWaits, appliesPartly},
		{"in-turn", starting, []string{"priority-class=longhorn-critical"}, nil, outcomeWaits, appliesPartly},
		{"unchanged", clusterFacts(), []string{"guaranteed-instance-manager-cpu=12"}, nil, outcomeNothing, appliesDone},
		{"unset", rolledOut, nil, []string{"engine-image-pod-liveness-probe-period"}, outcomeNothing, appliesDone},
		{"at-once", clusterFacts(), []string{"auto-delete-pod-when-volume-detached-unexpectedly=false"}, nil, outcomeNow, appliesNow},
		{"in-effect", clusterFacts(), nil, nil, outcomeNothing, ""},
		{"network-gone", networkGone, nil, nil, outcomeNothing, ""},
		{"malformed", malformed, nil, nil, outcomeInvalid, ""},
		{"corrected", malformed, []string{"priority-class="}, nil, outcomeNothing, appliesDone},
	} {
		t.Run(test.name, func(t *testing.T) {
			view := viewOf(test.facts, changesFor(t, test.set, test.unset))
			clitest.Golden(t, "plan-"+test.name+".txt", output(t, view, cli.OutputTable, wants[test.outcome]))
			must.Equal(t, view.Outcome, test.outcome)
			for _, s := range view.Settings {
				if s.Changed && test.name != "two" {
					must.Equal(t, s.Applies, test.applies, "%s", s.Name)
				}
			}
		})
	}
	must.Equal(t, int(cli.ExitWaits), 2)
}

func TestPlanAsJSON(t *testing.T) {
	view := planFor(t, clusterFacts(), "priority-class=longhorn-critical")
	view.Settings = view.Settings[3:6] // the other settings have the same shape
	clitest.Golden(t, "plan.json", output(t, view, cli.OutputJSON, cli.ExitWaits))
	empty := planFor(t, planner.Facts{Names: longhorn.DefaultNames(), Values: catalog.Resolve(nil, nil)})
	if out := output(t, empty, cli.OutputJSON, nil); strings.Contains(out, "null") {
		t.Errorf("got %s", out)
	}
}

func TestLongListsAreGroupedInTheTableOnly(t *testing.T) {
	f := clusterFacts()
	for i := range 100 {
		f.Rollout.Volumes = append(f.Rollout.Volumes, rwx.Volume{Name: fmt.Sprintf("pvc-%03d", i), Attached: true, Engine: catalog.EngineV1})
		f.Components = append(f.Components, catalog.Component{
			Kind: catalog.BackingImageManager, Name: fmt.Sprintf("backing-image-manager-%03d", i), Ready: true,
			Built: map[catalog.Trait]string{catalog.PriorityClassName: ""},
		})
	}
	view := planFor(t, f, "priority-class=longhorn-critical")
	must.True(t, len(view.Works) == 104 && len(view.Blockers) == 101, "got %d works, %d blockers", len(view.Works), len(view.Blockers))
	out := output(t, view, cli.OutputTable, cli.ExitWaits)
	for _, want := range []string{
		"Restart  BackingImageManager/backing-image-manager-000, BackingImageManager/backing-image-manager-001, BackingImageManager/backing-image-manager-002, and 98 more  node-2  ",
		"Volume/pvc-000, Volume/pvc-001, Volume/pvc-002, and 97 more  -  ", "kubectl -n longhorn-system describe volumes.longhorn.io pvc-000\n",
	} {
		must.Check(t, strings.Contains(regexp.MustCompile(`  +`).ReplaceAllString(out, "  "), want), "%q is not in\n%s", want, out)
	}
	must.Check(t, strings.Count(out, "\n") < 15, "got\n%s", out)
}

func TestOtherWaitingSettingIsNamed(t *testing.T) {
	f := inLonghorn(clusterFacts(), catalog.PriorityClass, "urgent")
	out := output(t, planFor(t, f, "guaranteed-instance-manager-cpu=20"), cli.OutputTable, cli.ExitWaits)
	must.Check(t, strings.Contains(out, "\nNot applied yet, with or without the change: priority-class\n"), "got\n%s", out)
}

func TestNetworkOfSharedVolumes(t *testing.T) {
	f := clusterFacts()
	f.Rollout = rollout.Rollout{
		DaemonSet: rollout.DaemonSet{Name: "longhorn-csi-plugin", Found: true, Observed: true, Wanted: 3, MaxUnavailable: 1, Revision: "1"},
		Volumes:   []rwx.Volume{{Name: "pvc-rwx", Shared: true, Attached: true, Nodes: []string{"node-1"}, Workloads: []string{"default/web-1"}}},
	}
	for i := 1; i <= 3; i++ {
		f.Rollout.Clients = append(f.Rollout.Clients, rwx.Client{Pod: fmt.Sprintf("csi-%d", i), Node: fmt.Sprintf("node-%d", i), Ready: true, Revision: "1"})
	}
	const change = "endpoint-network-for-rwx-volume=kube-system/storage-net"
	clitest.Golden(t, "plan-network.txt", output(t, planFor(t, f, change), cli.OutputTable, cli.ExitWaits))
	f.Rollout.Gate = rollout.GateNode
	clitest.Golden(t, "plan-network-by-node.txt", output(t, planFor(t, f, change), cli.OutputTable, cli.ExitWaits))
	f.Rollout.Windows = rollout.Windows{{Days: []time.Weekday{f.Now.Add(24 * time.Hour).Weekday()}, Length: time.Hour, Location: time.UTC}}
	clitest.Golden(t, "plan-network-window.txt", output(t, planFor(t, f, change), cli.OutputTable, cli.ExitWaits))
}

// Regression: the plan had nothing to do while CSI plugin pods waited to join a volume's own network.
func TestPerVolumeNetworksThatWaitAreNamed(t *testing.T) {
	f := clusterFacts()
	f.Rollout = rollout.Rollout{
		DaemonSet: rollout.DaemonSet{Name: "longhorn-csi-plugin", Found: true, Observed: true}, MountsFromHost: true,
		Volumes: []rwx.Volume{{Name: "pvc-rwx", Shared: true, Request: rwx.Request{Network: multus.Network{Namespace: "team-x", Name: "nfs"}}}},
	}
	out := output(t, planFor(t, f), cli.OutputTable, nil)
	must.Check(t, strings.Contains(out, "\nNote: RWX volumes wait for their networks: pvc-rwx for team-x/nfs"), "got\n%s", out)
	f.Rollout.Volumes = nil
	out = output(t, planFor(t, f), cli.OutputTable, nil)
	must.Check(t, !strings.Contains(out, "Note:"), "got\n%s", out)
}

// Regression: the plan left the changed setting out, because the setting waits for all volumes, but the rollout for RWX volumes only.
func TestNetworkMovesForAllSettingsThatChooseIt(t *testing.T) {
	f := inLonghorn(clusterFacts(), catalog.StorageNetworkForRWX, "true")
	rolled := ""
	f.Reported[catalog.EndpointNetworkForRWX] = planner.Reported{Rolled: &rolled, Applied: true}
	f.Rollout.Volumes = []rwx.Volume{{Name: "pvc-rwx", Shared: true, Attached: true, Engine: catalog.EngineV1, Nodes: []string{"node-2"}}}
	for i := range f.Components {
		if f.Components[i].Kind == catalog.InstanceManager {
			f.Components[i].Built[catalog.StorageAttachment] = ""
		}
	}
	f.Rollout = rollout.Rollout{DaemonSet: rollout.DaemonSet{Name: "longhorn-csi-plugin", Found: true, Observed: true}, Volumes: f.Rollout.Volumes}
	f.Rollout.Networks = map[multus.Network]bool{{Namespace: "kube-system", Name: "storage-net"}: true}
	view := planFor(t, f, "storage-network=kube-system/storage-net")
	out := output(t, view, cli.OutputTable, cli.ExitWaits)
	if !strings.Contains(out, "Applied now, and to be rolled out again after the change: storage-network-for-rwx-volume-enabled\n") || strings.Contains(out, "Not applied yet") {
		t.Errorf("got\n%s", out)
	}
	i := slices.IndexFunc(view.Works, func(w Work) bool { return w.Action == moveAction })
	must.True(t, i >= 0, "the network is not moved")
	must.Equal(t, view.Works[i].Settings, []string{"storage-network", "storage-network-for-rwx-volume-enabled"})
	must.Equal(t, view.Works[i].WaitsFor, "1 RWX volume attached: pvc-rwx")
}

func TestRefusedChanges(t *testing.T) {
	for _, test := range []struct {
		name       string
		set, unset []string
		want       error
		says       string
	}{
		{"misspelled", []string{"priority-klass=x"}, nil, cli.ErrUnknownSetting, "did you mean priority-class?"},
		{"unknown", []string{"x=y"}, nil, cli.ErrUnknownSetting, "\n  priority-class\n"},
		{"unknown, taken away", nil, []string{"priority-klass"}, cli.ErrUnknownSetting, "--unset"},
		{"no value", []string{"priority-class"}, nil, errNotNameValue, "priority-class"},
		{"twice", []string{"priority-class=a", "priority-class=b"}, nil, errTwice, ""},
		{"set and unset", []string{"priority-class=a"}, []string{"priority-class"}, errTwice, ""},
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
	must.Check(t, err == nil && *c[catalog.TaintToleration] == "key=value:NoSchedule", "got %v, %v", c, err)
}

package settings

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead-io/fairlead/api/rest/v1"
	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/cli/clitest"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

// waitingSetting has only a status: the value is in Longhorn's own setting.
func waitingSetting() *v1alpha1.Setting {
	s := &v1alpha1.Setting{ObjectMeta: metav1.ObjectMeta{Namespace: "longhorn-system", Name: "priority-class"}}
	s.Status = v1alpha1.SettingStatus{
		EffectiveValue: "longhorn-critical", Source: "longhorn",
		Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionApplied, Status: metav1.ConditionFalse, Reason: "Waiting", Message: "will be applied when these volumes are detached: pvc-a (node-2, pod default/web-0). Then 3 instance managers restart one by one",
			LastTransitionTime: metav1.NewTime(time.Now().Add(-330 * time.Minute)),
		}},
		Blockers: []v1alpha1.Blocker{{
			Kind: "Volume", Name: "pvc-a", Nodes: []string{"node-2"}, Workloads: []string{"default/web-0"}, Owners: []string{"default/statefulset/web"},
			Message: "volume is attached: stop the workloads that use it, so that it is detached",
		}},
	}
	return s
}

func show(t *testing.T, p cli.Target, output string, want error, names ...string) string {
	t.Helper()
	return clitest.Output(t, want, func(out io.Writer) error { return showSettings(t.Context(), out, io.Discard, p, output, names) })
}

func showList(t *testing.T, p cli.Target) (list v1.SettingList) {
	t.Helper()
	must.Do(t, json.Unmarshal([]byte(show(t, p, cli.OutputJSON, nil)), &list))
	return list
}

func TestSettingsAreShown(t *testing.T) {
	p := clitest.Target(t, nil, waitingSetting(), objects.LonghornSetting("priority-class", "longhorn-critical"), objects.LonghornSetting("v2-data-engine", "true"))
	clitest.Golden(t, "settings.txt", show(t, p, cli.OutputTable, nil))
	clitest.Golden(t, "settings-one.txt", show(t, p, cli.OutputTable, cli.ExitWaits, "priority-class"))
	clitest.Golden(t, "settings-one.json", show(t, p, cli.OutputJSON, nil, "auto-delete-pod-when-volume-detached-unexpectedly"))
	show(t, p, cli.OutputTable, cli.ErrUnknownSetting, "unknown")
	malformed := clitest.Target(t, nil, objects.LonghornSetting("taint-toleration", "no taint"))
	show(t, malformed, cli.OutputTable, cli.ExitWrong, "taint-toleration")
	if list := showList(t, p); len(list.Data) < 20 {
		t.Errorf("got %d settings", len(list.Data))
	}
}

func TestUnknownSettingsAreNamed(t *testing.T) {
	const note = "\nLonghorn has settings that this Fairlead does not know, perhaps of the danger zone: " +
		"b-of-1.13, c-of-1.13, d-of-1.13, and 1 more. Upgrade Fairlead: until then Longhorn alone judges and applies them\n"
	p := clitest.Target(t, nil, objects.LonghornSetting("e-of-1.13", ""), objects.LonghornSetting("d-of-1.13", ""), objects.LonghornSetting("c-of-1.13", ""),
		objects.LonghornSetting("b-of-1.13", ""), objects.LonghornSetting("log-level", "Info"))
	if out := show(t, p, cli.OutputTable, nil); !strings.HasSuffix(out, note) {
		t.Errorf("got\n%s", out)
	}
	must.Equal(t, showList(t, p).Unknown, []string{"b-of-1.13", "c-of-1.13", "d-of-1.13", "e-of-1.13"})
	must.Equal(t, fmt.Sprintf("%#v", showList(t, clitest.Target(t, nil)).Unknown), "[]string{}", "unknown settings, never null")
}

// Ten components may wait for the same maintenance window.
func TestEqualBlockersAreOneRow(t *testing.T) {
	window := v1.Blocker{Kind: "Time", Name: "maintenanceWindows", Message: "wait for Saturday"}
	out := clitest.Output(t, nil, func(out io.Writer) error {
		writeSetting(out, v1.Setting{Blockers: []v1.Blocker{window, window, {Kind: "Volume", Name: "pvc-a"}}}, time.Unix(0, 0))
		return nil
	})
	must.Equal(t, strings.Count(out, "maintenanceWindows"), 1)
	must.Equal(t, strings.Count(out, "Volume/pvc-a"), 1)
}

func TestMissingOrBrokenNetworkIsWarnedOf(t *testing.T) {
	warnings := func(objects ...client.Object) string {
		var out strings.Builder
		must.Do(t, showSettings(t.Context(), io.Discard, &out, clitest.Target(t, nil, objects...), cli.OutputTable, nil))
		return out.String()
	}
	value := objects.LonghornSetting("storage-network", "kube-system/storage-net")
	must.Equal(t, warnings(value), "Warning: storage-network: there is no NetworkAttachmentDefinition kube-system/storage-net, and pods on it do not start: create it\n")
	must.Equal(t, warnings(value, objects.NetworkAttachmentDefinition("kube-system", "storage-net")), "")
	broken := objects.NetworkAttachmentDefinition("kube-system", "storage-net")
	must.Do(t, unstructured.SetNestedField(broken.Object, "{not json", "spec", "config"))
	must.Equal(t, warnings(value, broken), "Warning: storage-network: the config of NetworkAttachmentDefinition kube-system/storage-net is no CNI configuration, and pods on it do not start: correct it\n")
	must.Equal(t, warnings(objects.LonghornSetting("storage-network", "")), "")
	both := warnings(value, objects.LonghornSetting("storage-network-for-rwx-volume-enabled", "true"))
	must.Check(t, strings.Contains(both, "Warning: storage-network-for-rwx-volume-enabled: there is no"), "got %s", both)
	newer := warnings(objects.LonghornSetting("endpoint-network-for-rwx-volume", "kube-system/storage-net"), objects.LonghornSetting("storage-network-for-rwx-volume-enabled", "true"))
	must.Check(t, strings.Contains(newer, "Warning: endpoint-network-for-rwx-volume: ") && !strings.Contains(newer, "enabled: "), "got %s", newer)
}

func TestGateOfNodesIsSaid(t *testing.T) {
	p := clitest.Target(t, nil, objects.LonghornSetting("storage-network-for-rwx-volume-enabled", "false"))
	p.Configuration.Longhorn.Networks.Gate = rollout.GateNode
	must.Check(t, strings.Contains(show(t, p, cli.OutputTable, cli.ExitWaits, "storage-network-for-rwx-volume-enabled"), "no RWX volume attached; to join, on the node alone (longhorn.networks.gate: node)"), "the gate is not said")
}

package catalog

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/storage"
)

func TestSettingValues(t *testing.T) {
	const notANetwork = "must be <namespace>/<NetworkAttachmentDefinition>"
	for _, test := range []struct {
		name    Name
		value   string
		problem string
	}{
		{StorageNetwork, "kube-system/storage-net", ""},
		{StorageNetwork, "", ""},
		{StorageNetwork, "kube-system", notANetwork},
		{StorageNetwork, "ns/", notANetwork + `: name "" is not a DNS name`},
		{EndpointNetworkForRWX, "kube-system/storage-net", ""},
		{EndpointNetworkForRWX, "", ""},
		{EndpointNetworkForRWX, "/nad", notANetwork + `: namespace "" is not a DNS label`},
		{StorageNetworkForRWX, "true", ""},
		{StorageNetworkForRWX, "false", ""},
		{StorageNetworkForRWX, "", `must be "true" or "false"`},
		{StorageNetworkForRWX, "True", ""},
		{StorageNetworkForRWX, "1", ""},
		{StorageNetworkForRWX, "yes", `must be "true" or "false"`},
		{StorageNetworkForRWX, "kube-system/storage-net", `must be "true" or "false"`},
	} {
		d, known := Lookup(string(test.name))
		if !known {
			t.Fatalf("%s is unknown", test.name)
		}
		if got := errorText(d.Parse(test.value)); got != test.problem {
			t.Errorf("%s %q: got %q, want %q", test.name, test.value, got, test.problem)
		}
	}
}

func TestEverySettingIsDefinedInFull(t *testing.T) {
	seen := map[Name]bool{}
	for _, d := range All() {
		if seen[d.Name] {
			t.Errorf("%s is defined twice", d.Name)
		}
		seen[d.Name] = true
		if d.Affects == "" || d.Since == "" || d.Normalize == nil || d.Gate == "" {
			t.Errorf("%s: incomplete: %+v", d.Name, d)
			continue
		}
		if (d.Trait == "") != (d.Wants == nil) {
			t.Errorf("%s: trait %q, but wants something: %t", d.Name, d.Trait, d.Wants != nil)
		}
		for _, text := range append([]string{d.Default}, d.OtherDefaults...) {
			if err := d.Parse(text); err != nil {
				t.Errorf("%s: its default %q: %v", d.Name, text, err)
			}
		}
	}
}

// Longhorn's, of 1.7 to 1.12.1 together: longhorn-manager types/setting.go, SettingCategoryDangerZone.
func TestTheDangerZoneIsLonghorns(t *testing.T) {
	want := []Name{
		"concurrent-backing-image-replenish-per-node-limit", "concurrent-replica-rebuild-per-node-limit",
		"data-engine-cpu-isolation-enabled", "data-engine-cpu-mask", "data-engine-hugepage-enabled", "data-engine-interrupt-mode-enabled",
		"data-engine-iobuf-large-pool-size", "data-engine-iobuf-small-pool-size", "data-engine-memory-size", "data-engine-number-of-cpu-cores",
		"disable-snapshot-purge", "endpoint-network-for-rwx-volume",
		"engine-image-pod-liveness-probe-failure-threshold", "engine-image-pod-liveness-probe-period", "engine-image-pod-liveness-probe-timeout",
		"guaranteed-instance-manager-cpu", "instance-manager-pod-liveness-probe-timeout", "log-path", "priority-class",
		"storage-network", "storage-network-for-rwx-volume-enabled",
		"system-managed-components-node-selector", "system-managed-csi-components-resource-limits",
		"taint-toleration", "v1-data-engine", "v2-data-engine",
		"v2-data-engine-cpu-mask", "v2-data-engine-guaranteed-instance-manager-cpu", "v2-data-engine-hugepage-limit",
	}
	var got []Name
	for _, d := range DangerZone() {
		got = append(got, d.Name)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) || len(got) != 29 {
		t.Errorf("got %d: %q", len(got), got)
	}
}

func TestGates(t *testing.T) {
	want := map[Gate][]Name{
		AllVolumesDetached:    {StorageNetwork, TaintToleration, SystemManagedNodeSelector, PriorityClass},
		SharedVolumesDetached: {StorageNetworkForRWX, EndpointNetworkForRWX},
		InstanceManagerIdle: {
			V2GuaranteedCPU, GuaranteedCPU, V1DataEngine, V2DataEngine, DataEngineCPUMask, DataEngineMemorySize, DataEngineHugepages,
			DataEngineInterrupts, V2CPUMask, V2HugepageLimit, DataEngineCPUCores, DataEngineCPUIsolation, DataEngineLargePool, DataEngineSmallPool, InstanceManagerProbeTimeout, LogPath,
		},
		AtOnce: {
			EngineImageProbePeriod, EngineImageProbeTimeout, EngineImageProbeFailures, CSIResources, ReplicaRebuildLimit, BackingImageLimit,
			DisableSnapshotPurge, AutoDeletePod, AutoDeletePodBlacklist,
		},
	}
	got := map[Gate][]Name{}
	for _, d := range All() {
		got[d.Gate] = append(got[d.Gate], d.Name)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
}

// What is accepted once is accepted as it is stored, and means the same there.
func TestNormalFormsAreNormal(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"", " ", "0", "1", "5", "12", "2048", "4000", "-", "+", ".", ",", "e1", "0x", "f", "true", "F", "a", "a=b", "a:b", ":", ";", "/", "NoSchedule",
		"ns", "/var", "..", `"`, "{", "}", `{"v1":"12","v2":"5"}`, `{"v2":"`, `"}`, `{"csi-attacher":{"limits":{"cpu":"`, `1.0"}}}`, "\n",
	})
	accepted := map[Name]bool{}
	rapid.Check(t, func(t *rapid.T) {
		value := strings.Join(rapid.SliceOfN(piece, 0, 5).Draw(t, "value"), "")
		for _, d := range All() {
			normal, err := d.Normalize(value)
			if err != nil {
				if normal != "" {
					t.Errorf("%s refuses %q and returns %q", d.Name, value, normal)
				}
				continue
			}
			accepted[d.Name] = true
			if again, err := d.Normalize(normal); again != normal || err != nil {
				t.Errorf("%s: %q became %q and then %q, %v", d.Name, value, normal, again, err)
			}
			checkMeaning(t, d, value, normal)
		}
	})
	for _, d := range All() {
		if !accepted[d.Name] {
			t.Errorf("%s never accepted anything", d.Name)
		}
	}
}

// checkMeaning asks both spellings of every kind of component.
func checkMeaning(t interface{ Errorf(string, ...any) }, d Definition, value, normal string) {
	if d.Wants == nil {
		return
	}
	nodes := Nodes{"node-1": {AllocatableMilliCPU: 4000}}
	some := false
	for _, c := range everyKind {
		want, ok := d.Wants(value, c, nodes)
		some = some || ok
		if again, okAgain := d.Wants(normal, c, nodes); again != want || okAgain != ok {
			t.Errorf("%s of %s: %q asks for %q, %t, its normal form %q for %q, %t", d.Name, c.Name, value, want, ok, normal, again, okAgain)
		}
	}
	if !some {
		t.Errorf("%s: %q asks nothing of any component", d.Name, value)
	}
}

func TestLookupKnowsNamesToTheLetter(t *testing.T) {
	for _, name := range []string{"", "Storage-Network", "storage-network ", "priority-class-of-nobody"} {
		if d, known := Lookup(name); known {
			t.Errorf("%q: got %s", name, d.Name)
		}
	}
}

func FuzzSettingValues(f *testing.F) {
	for _, seed := range []string{
		"", "true", "false", " true ", "ns/nad", " ns/nad ", "ns/", "/nad", "A B/C!", `ns/x"y`, "a/b/c", "\x00", "ns/\xff",
		"a:NoSchedule", "a=b:NoExecute;:", "a=b=c:NoSchedule", "disktype:ssd;zone:", "a:1;a:2", "longhorn-critical",
		"05", "-0", "12.5", "NaN", "0x1p3", "1e400", "2049", "0xFF", "0-1,5", "5-3", "0-100000000000",
		`{"v1":"12","v2":"12"}`, `{"v2":"0-1"}`, `{"v2":3}`, `{"v1":"1","v1":"2"}`, "{}", "{",
		`{"csi-attacher":{"requests":{"cpu":"10m"},"limits":{"cpu":0.5}}}`, `{"csi-attacher":{"limits":{"memory":"1e1000000"}}}`,
		"/var/lib/longhorn/logs/", "/", "/var/../x", "apps/StatefulSet;",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, d := range All() {
			normal, err := d.Normalize(value)
			if d.Wants != nil {
				for _, c := range everyKind { // whatever the value is: it must not panic
					d.Wants(value, c, Nodes{"node-1": {AllocatableMilliCPU: 4000}})
				}
			}
			if err != nil {
				continue
			}
			if again, err := d.Normalize(normal); again != normal || err != nil {
				t.Fatalf("%s: %q became %q and then %q, %v", d.Name, value, normal, again, err)
			}
			checkMeaning(t, d, value, normal)
			if !d.NamesNetwork {
				continue
			}
			network, err := storage.ParseNetwork(value)
			if err != nil {
				t.Fatalf("%s accepts %q, which is no network: %v", d.Name, value, err)
			}
			again, err := storage.ParseNetwork(network.String())
			if err != nil || again != network {
				t.Fatalf("%q became %q, %v", network, again, err)
			}
			a := storage.Attachment{Network: network, Interface: storage.Longhorn().StorageInterface}
			if network.IsZero() {
				a = storage.Attachment{}
			}
			annotation, err := storage.AddNetwork("", "pod-ns", a)
			if err != nil {
				t.Fatalf("%q: %v", value, err)
			}
			asked, err := storage.ManagedAttachment(annotation, "pod-ns", storage.Longhorn().Interfaces())
			if err != nil || asked != a {
				t.Fatalf("%q: a pod would ask for %q, %v", value, asked, err)
			}
		}
	})
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

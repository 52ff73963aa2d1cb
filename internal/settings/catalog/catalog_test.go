package catalog

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestEverySettingIsDefinedInFull(t *testing.T) {
	seen := map[Name]bool{}
	for _, d := range All() {
		must.Check(t, !seen[d.Name], "%s is defined twice", d.Name)
		seen[d.Name] = true
		if d.Affects == "" || d.Since == "" || d.Normalize == nil || d.Gate == "" {
			t.Errorf("%s: incomplete: %+v", d.Name, d)
			continue
		}
		refusal := d.Parse("\x00")
		must.Check(t, d.Form != "" && refusal != nil && strings.HasPrefix(refusal.Error()+": ", d.Form+": "), "%s: form %q, refusal: %v", d.Name, d.Form, refusal)
		must.Equal(t, d.Trait == "", d.Wants == nil, "%s: trait %q, has Wants: %t", d.Name, d.Trait, d.Wants != nil)
		for _, text := range append([]string{d.Default}, d.OtherDefaults...) {
			err := d.Parse(text)
			must.Check(t, err == nil, "%s: default %q: %v", d.Name, text, err)
		}
	}
}

func TestGates(t *testing.T) {
	want := map[Gate][]Name{
		AllVolumesDetached:    {StorageNetwork, TaintToleration, SystemManagedNodeSelector, PriorityClass},
		SharedVolumesDetached: {StorageNetworkForRWX, EndpointNetworkForRWX},
		InstanceManagerIdle: {V2GuaranteedCPU, GuaranteedCPU, V1DataEngine, V2DataEngine, DataEngineCPUMask, DataEngineMemorySize,
			DataEngineHugepages, DataEngineInterrupts, V2CPUMask, V2HugepageLimit, DataEngineCPUCores, DataEngineCPUIsolation, DataEngineLargePool,
			DataEngineSmallPool, InstanceManagerProbeTimeout, LogPath},
		AtOnce: {EngineImageProbePeriod, EngineImageProbeTimeout, EngineImageProbeFailures, CSIResources, ReplicaRebuildLimit, BackingImageLimit,
			DisableSnapshotPurge, AutoDeletePod, AutoDeletePodBlacklist},
	}
	got := map[Gate][]Name{}
	for _, d := range All() {
		got[d.Gate] = append(got[d.Gate], d.Name)
	}
	must.Equal(t, got, want)
}

func TestNormalFormsAreNormal(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"", " ", "0", "1", "5", "12", "2048", "4000", "-", "+", ".", ",", "e1", "0x", "f", "true", "F", "a", "a=b", "a:b", ":", ";", "/", "NoSchedule",
		"ns", "/var", "..", `"`, "{", "}", `{"v1":"12","v2":"5"}`, `{"v2":"`, `"}`, `{"csi-attacher":{"limits":{"cpu":"`, `1.0"}}}`, "\n",
	})
	accepted := map[Name]bool{}
	rapid.Check(t, func(t *rapid.T) {
		value := strings.Join(rapid.SliceOfN(piece, 0, 5).Draw(t, "value"), "")
		for _, d := range All() {
			if checkNormalForm(t, d, value) {
				accepted[d.Name] = true
			}
		}
	})
	for _, d := range All() {
		must.Check(t, accepted[d.Name], "%s never accepted a value", d.Name)
	}
}

// checkNormalForm reports whether the value is accepted. The normal form must be accepted, and mean the same.
func checkNormalForm(t must.TB, d Definition, value string) bool {
	normal, err := d.Normalize(value)
	if err != nil {
		must.Equal(t, normal, "", "normal form of %s with refused value %q", d.Name, value)
		checkMeaning(t, d, value, value) // must not panic
		return false
	}
	if again, err := d.Normalize(normal); again != normal || err != nil {
		t.Errorf("%s: %q became %q and then %q, %v", d.Name, value, normal, again, err)
	}
	must.Check(t, checkMeaning(t, d, value, normal) || d.Wants == nil, "%s: %q asks for nothing", d.Name, value)
	if d.NamesNetwork {
		checkNetwork(t, value)
	}
	return true
}

// checkMeaning compares what a value and its normal form ask of each kind of component. It reports whether they ask for anything.
func checkMeaning(t must.TB, d Definition, value, normal string) (isAsked bool) {
	if d.Wants == nil {
		return false
	}
	nodes := Nodes{"node-1": {AllocatableMilliCPU: 4000}}
	for _, c := range everyKind {
		want, ok := d.Wants(value, c, nodes)
		isAsked = isAsked || ok
		if again, okAgain := d.Wants(normal, c, nodes); again != want || okAgain != ok {
			t.Errorf("%s of %s: %q asks for %q, %t, its normal form %q for %q, %t", d.Name, c.Name, value, want, ok, normal, again, okAgain)
		}
	}
	return isAsked
}

// checkNetwork writes a network into the annotation of a pod, and reads the network again.
func checkNetwork(t must.TB, value string) {
	network, err := multus.ParseNetwork(value)
	must.Do(t, err)
	again, err := multus.ParseNetwork(network.String())
	must.Do(t, err)
	must.Equal(t, again, network, "%q parsed again", value)
	a := multus.Attachment{Network: network, Interface: longhorn.DefaultNames().StorageInterface}
	if network.IsZero() {
		a = multus.Attachment{}
	}
	annotation, err := multus.AddNetwork("", "pod-ns", a)
	must.Do(t, err)
	requested, err := multus.ManagedAttachment(annotation, "pod-ns", longhorn.DefaultNames().Interfaces())
	must.Do(t, err)
	must.Equal(t, requested, a, "request of a pod for %q", value)
}

func TestLookupNeedsTheExactName(t *testing.T) {
	for _, name := range []string{"", "Storage-Network", "storage-network ", "priority-class-of-nobody"} {
		d, known := Lookup(name)
		must.Check(t, !known, "%q: got %s", name, d.Name)
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
			checkNormalForm(t, d, value)
		}
	})
}

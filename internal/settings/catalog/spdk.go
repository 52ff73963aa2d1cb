package catalog

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// The settings of the SPDK daemon in instance managers of the v2 data engine.
// Before 1.10, the first two had the names of the last two, and memory was always
// huge pages. Source: longhorn-manager
// controller/instance_manager_controller.go, createInstanceManagerPodSpec.
const (
	DataEngineCPUMask    Name = "data-engine-cpu-mask"
	DataEngineMemorySize Name = "data-engine-memory-size" // MiB
	DataEngineHugepages  Name = "data-engine-hugepage-enabled"
	DataEngineInterrupts Name = "data-engine-interrupt-mode-enabled"
	V2CPUMask            Name = "v2-data-engine-cpu-mask"
	V2HugepageLimit      Name = "v2-data-engine-hugepage-limit" // MiB
)

func spdkFamily() []Definition {
	return []Definition{
		spdk(DataEngineCPUMask, `{"v2":"0x3"}`, v2Only(normalizeCPUMask, cpuMaskForm, "0x3"), CPUMask, `{"v2":"0x1"}`), // before 1.12
		spdk(DataEngineMemorySize, `{"v2":"2048"}`, v2Only(normalizeMemory, memoryForm, "2048"), MemorySize),
		spdk(DataEngineHugepages, `{"v2":"true"}`, v2Only(normalizeBool, boolForm, "true"), Hugepages),
		spdk(DataEngineInterrupts, `{"v2":"false"}`, v2Only(normalizeBool, boolForm, "true"), InterruptMode),
		formerSPDK(V2CPUMask, DataEngineCPUMask, "0x1", normalizeCPUMask, cpuMaskForm, CPUMask, "1.8"),
		readOnly(formerSPDK(V2HugepageLimit, DataEngineMemorySize, "2048", normalizeMemory, memoryForm, MemorySize, "1.6")),
	}
}

const affectsV2InstanceManagers = "instance-manager pods of the v2 data engine"

func spdk(name Name, text string, p perEngine, trait Trait, otherDefaults ...string) Definition {
	return Definition{
		Name: name, Default: text, OtherDefaults: otherDefaults, Normalize: p.normalize, Form: p.allowed(), Since: "1.10", DangerZone: true, Gate: InstanceManagerIdle,
		Trait: trait, Wants: p.wants(EngineV2), Affects: affectsV2InstanceManagers,
	}
}

// formerSPDK defines a setting of versions before 1.10, which accepts no JSON.
func formerSPDK(name, replacedBy Name, text string, normalize func(string) (string, error), form string, trait Trait, since string) Definition {
	return Definition{
		Name: name, Default: text, Normalize: normalize, Form: form, Since: since, Until: "1.10", ReplacedBy: replacedBy, DangerZone: true, Gate: InstanceManagerIdle,
		Trait: trait, Wants: wants(instanceManagerOf(EngineV2), normalize), Affects: affectsV2InstanceManagers,
	}
}

// readOnly marks a setting that is read-only in every version. Source: longhorn-manager types/setting.go.
func readOnly(d Definition) Definition {
	d.ReadOnly = true
	return d
}

// v2Only is the grammar of a setting of the v2 data engine only.
func v2Only(one func(string) (string, error), form, example string) perEngine {
	return perEngine{engines: []string{EngineV2}, one: one, form: form, each: `{"v2":"` + example + `"}`}
}

const memoryForm = "must be an even number of MiB from 0 to 2147483646"

// normalizeMemory refuses odd numbers: huge pages have 2 MiB, and the API server refuses a pod with half a huge page.
func normalizeMemory(value string) (string, error) {
	text, err := wholeNumber(0, unbounded-1)(value)
	if err != nil || strings.ContainsAny(text[len(text)-1:], "13579") {
		return "", malformed{form: memoryForm}
	}
	return text, nil
}

const mebi = 1 << 20

// MemoryTrait is an amount of memory or huge pages in MiB.
func MemoryTrait(q resource.Quantity) string { return strconv.FormatInt(q.Value()/mebi, 10) }

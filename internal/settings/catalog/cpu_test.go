package catalog

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestGuaranteedCPUValues(t *testing.T) {
	const (
		form   = `must be a number from 0 to 40, or one for each data engine as {"v1":"12","v2":"12"}`
		zero   = `{"v1":"0","v2":"0"}`
		twelve = `{"v1":"12","v2":"12"}`
	)
	checkValues(t, GuaranteedCPU, form, accepted{
		"12": twelve, twelve: twelve, "+012": twelve, // one number before Longhorn 1.10
		"0": zero, "-0": zero, "40": `{"v1":"40","v2":"40"}`,
		" 12.50 ": `{"v1":"12.5","v2":"12.5"}`, "1.25e1": `{"v1":"12.5","v2":"12.5"}`,
		` { "v2" : "012.0" , "v1" : " 5 " } `: `{"v1":"5","v2":"12"}`,
	}, refused{
		"": "", "40.1": "", "-1": "", "12%": "", "0x1p3": "", "1_2": "", "NaN": "", "Inf": "", `["12"]`: "",
		`{"v1":"12"}`:                     "data engine v2 is missing",
		`{}`:                              "data engine v1 is missing",
		`{"v1":"12","v2":"12","v3":"12"}`: `data engine "v3" must be v1 or v2`,
		`{"V1":"12","v2":"12"}`:           `data engine "V1" must be v1 or v2`,
		`{"v1":"12","v1":"13","v2":"12"}`: "a data engine occurs twice",
		`{"v1":12,"v2":"12"}`:             "the value of v1 must be in quotes",
		`{"v1":null,"v2":"12"}`:           "the value of v1 must be in quotes",
		`{"v1":"12","v2":"41"}`:           `v2 is "41"`,
		`{"v1":"nan","v2":"1"}`:           `v1 is "nan"`,
		`{"v1":"12"`:                      "not a JSON object",
		`{"v1":"1","v2":"1"}{}`:           "not a JSON object",
	})
}

func TestV2GuaranteedCPUValues(t *testing.T) {
	checkValues(t, V2GuaranteedCPU, "must be a whole number from 1000 to 2147483647", accepted{
		"1000": "1000", "12000": "12000", " 01250\n": "1250",
	}, refused{"999": "", "2147483648": "", "1250m": "", "1250.0": "", `{"v2":"1250"}`: ""})
}

func TestCPUOfInstanceManagers(t *testing.T) {
	nodes := Nodes{
		"node-1":     {AllocatableMilliCPU: 3875},
		"overridden": {AllocatableMilliCPU: 4000, InstanceManagerMilliCPU: 750},
		"whole":      {AllocatableMilliCPU: 4000, InstanceManagerMilliCPU: 2000},
		"new":        {},
	}
	cores := func(c Component, cores string) Component {
		c.Built = map[Trait]string{CPUCores: cores}
		return c
	}
	checkWants(t, GuaranteedCPU, nodes, []wanted{
		{"12", managerV1, "465m"},
		{"12.1", managerV1, "469m"}, // 468.875, rounded as Longhorn rounds
		{"12", managerV2, "465m"},
		{"0", managerV1, "0m"},
		{`{"v1":"10","v2":"20"}`, managerV2, "775m"},
		{"12", on("overridden", managerV1), "750m"},
		{`{"v1":"10","v2":"20"}`, on("overridden", managerV2), "750m"},
		{"12", on("new", managerV1), nothing}, // reports no capacity yet
		{"12", on("deleted", managerV1), nothing},
		{"12", Component{Kind: InstanceManager, Node: "node-1"}, nothing}, // unknown engine
		{"12", Component{Kind: ShareManager, Node: "node-1", Engine: EngineV1}, nothing},
		{`{"v1":"12"}`, managerV1, nothing},
		{"12", cores(managerV2, "0"), "465m"}, // the CPU mask is in effect
		{"12", cores(managerV2, "2"), "2000m"},
		{"0", cores(managerV2, "2"), "2000m"},
		{"40", cores(managerV2, "1"), "2000m"}, // 1550, rounded up to whole cores
		{"12", cores(on("whole", managerV2), "2"), "2000m"},
		{"12", cores(on("overridden", managerV2), "1"), "1000m"},
		{"12", cores(managerV2, "?"), "465m"},
	})
	checkWants(t, V2GuaranteedCPU, nodes, []wanted{
		{"01250", managerV2, "1250m"},
		{"1250", on("overridden", managerV2), "1250m"}, // Longhorn's override was for v1 only
		{"1250", on("new", managerV2), "1250m"},
		{"1250", managerV1, nothing},
		{"12", managerV2, nothing},
	})
}

// If Longhorn has both settings, the first in the catalog decides.
func TestPrecedenceOfRenamedSettings(t *testing.T) {
	position := func(name Name) int { return slices.IndexFunc(All(), func(d Definition) bool { return d.Name == name }) }
	for first, second := range map[Name]Name{V2GuaranteedCPU: GuaranteedCPU, DataEngineCPUMask: V2CPUMask, DataEngineMemorySize: V2HugepageLimit} {
		must.Check(t, position(first) <= position(second), "%s is after %s", first, second)
	}
}

func TestCPUTrait(t *testing.T) {
	for text, want := range map[string]string{"0": "0m", "465m": "465m", "1.25": "1250m", "2": "2000m", "0.0005": "1m"} {
		must.Equal(t, CPUTrait(resource.MustParse(text)), want, "%s", text)
	}
}

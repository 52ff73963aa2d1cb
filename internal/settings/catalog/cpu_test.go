package catalog

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

func TestSpellingsOfGuaranteedCPU(t *testing.T) {
	const form = `must be a number from 0 to 40, or one for each data engine as {"v1":"12","v2":"12"}`
	checkSpellings(t, GuaranteedCPU, map[string]spelled{
		"Longhorn's of before 1.10":  {value: "12", normal: `{"v1":"12","v2":"12"}`},
		"Longhorn's since":           {value: `{"v1":"12","v2":"12"}`, normal: `{"v1":"12","v2":"12"}`},
		"none":                       {value: "0", normal: `{"v1":"0","v2":"0"}`},
		"the most":                   {value: "40", normal: `{"v1":"40","v2":"40"}`},
		"more than that":             {value: "40.1", problem: form},
		"less than none":             {value: "-1", problem: form},
		"none, from below":           {value: "-0", normal: `{"v1":"0","v2":"0"}`},
		"a fraction":                 {value: " 12.50 ", normal: `{"v1":"12.5","v2":"12.5"}`},
		"zeros and a sign":           {value: "+012", normal: `{"v1":"12","v2":"12"}`},
		"an exponent":                {value: "1.25e1", normal: `{"v1":"12.5","v2":"12.5"}`},
		"empty":                      {value: "", problem: form},
		"a percent sign":             {value: "12%", problem: form},
		"in hexadecimal":             {value: "0x1p3", problem: form},
		"with an underscore":         {value: "1_2", problem: form},
		"NaN":                        {value: "NaN", problem: form},
		"infinite":                   {value: "Inf", problem: form},
		"spelled another way":        {value: ` { "v2" : "012.0" , "v1" : " 5 " } `, normal: `{"v1":"5","v2":"12"}`},
		"of one engine alone":        {value: `{"v1":"12"}`, problem: form + ": data engine v2 is missing"},
		"of no engine":               {value: `{}`, problem: form + ": data engine v1 is missing"},
		"of an unknown engine":       {value: `{"v1":"12","v2":"12","v3":"12"}`, problem: form + `: data engine "v3" must be v1 or v2`},
		"an engine in upper case":    {value: `{"V1":"12","v2":"12"}`, problem: form + `: data engine "V1" must be v1 or v2`},
		"an engine twice":            {value: `{"v1":"12","v1":"13","v2":"12"}`, problem: form + ": a data engine is there twice"},
		"numbers, as Longhorn wants": {value: `{"v1":12,"v2":"12"}`, problem: form + ": the value of v1 must be in quotes"},
		"null":                       {value: `{"v1":null,"v2":"12"}`, problem: form + ": the value of v1 must be in quotes"},
		"one out of range":           {value: `{"v1":"12","v2":"41"}`, problem: form + `: v2 is "41"`},
		"one that is NaN":            {value: `{"v1":"nan","v2":"1"}`, problem: form + `: v1 is "nan"`},
		"half an object":             {value: `{"v1":"12"`, problem: form + ": not a JSON object"},
		"two objects":                {value: `{"v1":"1","v2":"1"}{}`, problem: form + ": not a JSON object"},
		"a list":                     {value: `["12"]`, problem: form},
	})
}

func TestSpellingsOfV2GuaranteedCPU(t *testing.T) {
	const form = "must be a whole number from 1000 to 2147483647"
	checkSpellings(t, V2GuaranteedCPU, map[string]spelled{
		"the least":        {value: "1000", normal: "1000"},
		"as Longhorn 1.9":  {value: "12000", normal: "12000"},
		"zeros and spaces": {value: " 01250\n", normal: "1250"},
		"too little":       {value: "999", problem: form},
		"too much":         {value: "2147483648", problem: form},
		"with a unit":      {value: "1250m", problem: form},
		"a fraction":       {value: "1250.0", problem: form},
		"for each engine":  {value: `{"v2":"1250"}`, problem: form},
	})
}

func TestCPUOfInstanceManagers(t *testing.T) {
	nodes := Nodes{
		"node-1": {AllocatableMilliCPU: 3875},
		"set":    {AllocatableMilliCPU: 4000, InstanceManagerMilliCPU: 750},
		"whole":  {AllocatableMilliCPU: 4000, InstanceManagerMilliCPU: 2000},
		"new":    {},
	}
	on := func(node string, c Component) Component { c.Node = node; return c }
	checkWants(t, GuaranteedCPU, nodes, map[string]asked{
		"a share, rounded as Longhorn does":   {value: "12", component: managerV1, want: "465m"},
		"rounded up":                          {value: "12.1", component: managerV1, want: "469m"}, // of 468.875
		"of the other engine too":             {value: "12", component: managerV2, want: "465m"},
		"none":                                {value: "0", component: managerV1, want: "0m"},
		"of its engine":                       {value: `{"v1":"10","v2":"20"}`, component: managerV2, want: "775m"},
		"the node's own wins":                 {value: "12", component: on("set", managerV1), want: "750m"},
		"the node's own wins for v2":          {value: `{"v1":"10","v2":"20"}`, component: on("set", managerV2), want: "750m"},
		"a node that reports nothing yet":     {value: "12", component: on("new", managerV1), none: true},
		"an unknown node":                     {value: "12", component: on("gone", managerV1), none: true},
		"an engine that nobody knows":         {value: "12", component: Component{Kind: InstanceManager, Node: "node-1"}, none: true},
		"no instance manager":                 {value: "12", component: Component{Kind: ShareManager, Node: "node-1", Engine: EngineV1}, none: true},
		"a value of before Fairlead's checks": {value: `{"v1":"12"}`, component: managerV1, none: true},
	})
	cores := func(c Component, cores string) Component { c.Built = map[Trait]string{CPUCores: cores}; return c }
	checkWants(t, GuaranteedCPU, nodes, map[string]asked{
		"a mask in place of cores":          {value: "12", component: cores(managerV2, "0"), want: "465m"},
		"fewer than the cores":              {value: "12", component: cores(managerV2, "2"), want: "2000m"},
		"no share":                          {value: "0", component: cores(managerV2, "2"), want: "2000m"},
		"more than the cores, made whole":   {value: "40", component: cores(managerV2, "1"), want: "2000m"}, // of 1550
		"exactly the cores":                 {value: "12", component: cores(on("whole", managerV2), "2"), want: "2000m"},
		"the node's own, made whole":        {value: "12", component: cores(on("set", managerV2), "1"), want: "1000m"},
		"cores that can't be read are none": {value: "12", component: cores(managerV2, "?"), want: "465m"},
	})
	checkWants(t, V2GuaranteedCPU, nodes, map[string]asked{
		"v2":                       {value: "01250", component: managerV2, want: "1250m"},
		"whatever the node sets":   {value: "1250", component: on("set", managerV2), want: "1250m"}, // Longhorn did so for v1 only
		"whatever it can allocate": {value: "1250", component: on("new", managerV2), want: "1250m"},
		"not v1":                   {value: "1250", component: managerV1, none: true},
		"not well formed":          {value: "12", component: managerV2, none: true},
	})
}

// Where both are there, the first in the catalog decides.
func TestTheOlderCPUSettingIsFirst(t *testing.T) {
	if a, b := position(V2GuaranteedCPU), position(GuaranteedCPU); a > b {
		t.Errorf("at %d and %d", a, b)
	}
}

func TestCPUTrait(t *testing.T) {
	for text, want := range map[string]string{"0": "0m", "465m": "465m", "1.25": "1250m", "2": "2000m", "0.0005": "1m"} {
		if got := CPUTrait(resource.MustParse(text)); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func position(name Name) int {
	for i, d := range All() {
		if d.Name == name {
			return i
		}
	}
	return -1
}

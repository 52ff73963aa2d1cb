package catalog

import "testing"

func TestDataEngines(t *testing.T) {
	const form = `must be "true" or "false"`
	for _, name := range []Name{V1DataEngine, V2DataEngine, DisableSnapshotPurge} {
		checkSpellings(t, name, map[string]spelled{
			"on":              {value: " True ", normal: "true"},
			"off":             {value: "0", normal: "false"},
			"empty":           {value: "", problem: form},
			"a word":          {value: "on", problem: form},
			"for each engine": {value: `{"v2":"true"}`, problem: form},
		})
	}
	nodes := Nodes{"no-v2": {DisabledV2: true}}
	checkWants(t, V1DataEngine, nodes, map[string]asked{
		"on":              {value: "true", component: managerV1, want: "true"},
		"off":             {value: "F", component: managerV1, want: "false"},
		"the other":       {value: "false", component: managerV2, none: true},
		"not well formed": {value: "", component: managerV1, none: true},
		"v2 is disabled":  {value: "true", component: Component{Kind: InstanceManager, Engine: EngineV1, Node: "no-v2"}, want: "true"},
		"nothing else":    {value: "true", component: Component{Kind: ShareManager, Engine: EngineV1}, none: true},
	})
	checkWants(t, V2DataEngine, nodes, map[string]asked{
		"on":                   {value: "1", component: managerV2, want: "true"},
		"off":                  {value: "false", component: managerV2, want: "false"},
		"the other":            {value: "false", component: managerV1, none: true},
		"disabled on its node": {value: "true", component: Component{Kind: InstanceManager, Engine: EngineV2, Node: "no-v2"}, want: "false"},
	})
}

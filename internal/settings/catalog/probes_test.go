package catalog

import "testing"

func TestProbes(t *testing.T) {
	const form = "must be a whole number from 1 to 60"
	for _, name := range []Name{InstanceManagerProbeTimeout, EngineImageProbePeriod, EngineImageProbeTimeout, EngineImageProbeFailures} {
		checkSpellings(t, name, map[string]spelled{
			"the least":   {value: "1", normal: "1"},
			"the most":    {value: "60", normal: "60"},
			"zeros":       {value: " 05 ", normal: "5"},
			"too little":  {value: "0", problem: form},
			"too much":    {value: "61", problem: form},
			"with a unit": {value: "10s", problem: form},
			"empty":       {value: "", problem: form},
		})
	}
	checkWants(t, InstanceManagerProbeTimeout, nil, map[string]asked{
		"v1":                {value: "010", component: managerV1, want: "10"},
		"v2":                {value: "10", component: managerV2, want: "10"},
		"not engine images": {value: "10", component: engineImages, none: true},
		"not well formed":   {value: "ten", component: managerV1, none: true},
	})
	for _, name := range []Name{EngineImageProbePeriod, EngineImageProbeTimeout, EngineImageProbeFailures} {
		checkWants(t, name, nil, map[string]asked{
			"engine images":         {value: "05", component: engineImages, want: "5"},
			"not the CSI plugin":    {value: "5", component: plugin, none: true},
			"not instance managers": {value: "5", component: managerV1, none: true},
			"not a Deployment":      {value: "5", component: Component{Kind: Deployment, Name: "engine-image-ei-1"}, none: true},
		})
	}
}

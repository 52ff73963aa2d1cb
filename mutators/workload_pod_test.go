package mutators

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestGateWorkloadPod(t *testing.T) {
	held := []HeldClaim{{Claim: "data", Volume: "pv-a", Node: "node-1"}}
	for name, test := range map[string]struct {
		pod        string
		held       []HeldClaim
		unattached bool
		want       string
	}{
		"held":                             {`{}`, held, false, `[{"op":"add","path":"/spec/schedulingGates","value":[{"name":"fairlead.io/fence"}]},{"op":"add","path":"/metadata/labels","value":{"fairlead.io/gated":"true"}}]`},
		"with labels and another gate":     {`{"metadata":{"labels":{"a":"b"}},"spec":{"schedulingGates":[{"name":"other"}]}}`, held, false, `[{"op":"add","path":"/spec/schedulingGates/-","value":{"name":"fairlead.io/fence"}},{"op":"add","path":"/metadata/labels/fairlead.io~1gated","value":"true"}]`},
		"the label alone":                  {`{"metadata":{"labels":{"fairlead.io/gated":"true"}}}`, held, false, `[{"op":"add","path":"/spec/schedulingGates","value":[{"name":"fairlead.io/fence"}]}]`},
		"gated already":                    {`{"metadata":{"labels":{"fairlead.io/gated":"true"}},"spec":{"schedulingGates":[{"name":"fairlead.io/fence"}]}}`, held, false, `null`},
		"on a node already":                {`{"spec":{"nodeName":"node-2"}}`, held, false, `null`},
		"held, and known to be unattached": {`{}`, held, true, `[{"op":"add","path":"/spec/schedulingGates","value":[{"name":"fairlead.io/fence"}]},{"op":"add","path":"/metadata/labels","value":{"fairlead.io/gated":"true"}},{"op":"add","path":"/metadata/labels/fairlead.io~1unattached-volumes","value":"true"}]`},
		"unattached":                       {`{}`, nil, true, `[{"op":"add","path":"/metadata/labels","value":{"fairlead.io/unattached-volumes":"true"}}]`},
		"unattached, with labels":          {`{"metadata":{"labels":{"a":"b"}}}`, nil, true, `[{"op":"add","path":"/metadata/labels/fairlead.io~1unattached-volumes","value":"true"}]`},
		"unattached already":               {`{"metadata":{"labels":{"fairlead.io/unattached-volumes":"true"}}}`, nil, true, `null`},
		"not held":                         {`{}`, nil, false, `null`},
		"not held, but gated by its owner": {`{"spec":{"schedulingGates":[{"name":"fairlead.io/fence"}]}}`, nil, false, `null`},
	} {
		t.Run(name, func(t *testing.T) {
			var pod WorkloadPod
			if err := json.Unmarshal([]byte(test.pod), &pod); err != nil {
				t.Fatal(err)
			}
			result := GateWorkloadPod(pod, test.held, test.unattached)
			got, err := json.Marshal(result.Patch)
			if err != nil || string(got) != test.want {
				t.Fatalf("got %s, %v", got, err)
			}
			if told := len(result.Warnings) == 1 && strings.Contains(result.Warnings[0], "kubectl describe nodefence node-1"); told != strings.Contains(test.want, "schedulingGates") {
				t.Errorf("got warnings %v", result.Warnings)
			}
		})
	}
}

func TestClaimsOfAPod(t *testing.T) {
	var pod WorkloadPod
	const spec = `"spec":{"volumes":[{"name":"b","persistentVolumeClaim":{"claimName":"data"}},{"name":"a","persistentVolumeClaim":{"claimName":"data"}},{"name":"scratch","ephemeral":{}},{"name":"e","emptyDir":{}}]}`
	if err := json.Unmarshal([]byte(`{"metadata":{"name":"web"},`+spec+`}`), &pod); err != nil {
		t.Fatal(err)
	}
	if got := pod.Claims(); !slices.Equal(got, []string{"data", "web-scratch"}) {
		t.Errorf("got %v", got)
	}
	pod.Metadata.Name = "" // the API server makes it up later
	if got := pod.Claims(); !slices.Equal(got, []string{"data"}) {
		t.Errorf("without a name: got %v", got)
	}
}

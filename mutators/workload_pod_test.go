package mutators

import (
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestGateWorkloadPod(t *testing.T) {
	held := []HeldClaim{{Claim: "data", Volume: "pv-a", Node: "node-1"}}
	for name, test := range map[string]struct {
		pod        string
		held       []HeldClaim
		unattached bool
		want       string
	}{
		"held":                         {`{}`, held, false, `[{"op":"add","path":"/metadata/labels","value":{"fairlead.io/gated":"true"}},{"op":"add","path":"/spec/schedulingGates","value":[{"name":"fairlead.io/fence"}]}]`},
		"labels and another gate":      {`{"metadata":{"labels":{"a":"b"}},"spec":{"schedulingGates":[{"name":"other"}]}}`, held, false, `[{"op":"add","path":"/metadata/labels/fairlead.io~1gated","value":"true"},{"op":"add","path":"/spec/schedulingGates/-","value":{"name":"fairlead.io/fence"}}]`},
		"label alone":                  {`{"metadata":{"labels":{"fairlead.io/gated":"true"}}}`, held, false, `[{"op":"add","path":"/spec/schedulingGates","value":[{"name":"fairlead.io/fence"}]}]`},
		"gated already":                {`{"metadata":{"labels":{"fairlead.io/gated":"true"}},"spec":{"schedulingGates":[{"name":"fairlead.io/fence"},{"name":"other"}]}}`, held, false, `null`},
		"on a node":                    {`{"spec":{"nodeName":"node-2"}}`, held, false, `null`},
		"held, unattached":             {`{}`, held, true, `[{"op":"add","path":"/metadata/labels","value":{"fairlead.io/gated":"true","fairlead.io/unattached-volumes":"true"}},{"op":"add","path":"/spec/schedulingGates","value":[{"name":"fairlead.io/fence"}]}]`},
		"held, unattached, labels":     {`{"metadata":{"labels":{"a":"b"}}}`, held, true, `[{"op":"add","path":"/metadata/labels/fairlead.io~1unattached-volumes","value":"true"},{"op":"add","path":"/metadata/labels/fairlead.io~1gated","value":"true"},{"op":"add","path":"/spec/schedulingGates","value":[{"name":"fairlead.io/fence"}]}]`},
		"unattached":                   {`{}`, nil, true, `[{"op":"add","path":"/metadata/labels","value":{"fairlead.io/unattached-volumes":"true"}}]`},
		"unattached, with labels":      {`{"metadata":{"labels":{"a":"b"}}}`, nil, true, `[{"op":"add","path":"/metadata/labels/fairlead.io~1unattached-volumes","value":"true"}]`},
		"unattached already":           {`{"metadata":{"labels":{"fairlead.io/unattached-volumes":"true"}}}`, nil, true, `null`},
		"not held":                     {`{}`, nil, false, `null`},
		"not held, gated by its owner": {`{"spec":{"schedulingGates":[{"name":"fairlead.io/fence"}]}}`, nil, false, `null`},
	} {
		t.Run(name, func(t *testing.T) {
			result := GateWorkloadPod(view[WorkloadPod](t, test.pod), test.held, test.unattached)
			got := string(encode(t, result.Patch))
			must.True(t, got == test.want && (result.Outcome == Mutated) == (got != "null"), "%s: got %s", result.Outcome, got)
			must.Equal(t, len(result.Warnings) == 1 && strings.Contains(result.Warnings[0], "kubectl describe nodefence node-1"), strings.Contains(test.want, "schedulingGates"), "warning in %v", result.Warnings)
		})
	}
}

func TestClaimsOfAPod(t *testing.T) {
	const spec = `"spec":{"volumes":[{"name":"b","persistentVolumeClaim":{"claimName":"data"}},{"name":"scratch","ephemeral":{}},{"name":"a","persistentVolumeClaim":{"claimName":"data"}},{"name":"e","emptyDir":{}}]}`
	pod := view[WorkloadPod](t, `{"metadata":{"name":"web"},`+spec+`}`)
	must.Equal(t, pod.Claims(), []string{"data", "web-scratch"})
	pod.Metadata.Name = "" // the API server generates the name later
	must.Equal(t, pod.Claims(), []string{"data"}, "without a name")
}

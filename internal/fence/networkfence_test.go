package fence

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// One message contains the other, and messages outlive a change of the state: there is no observed generation.
func TestOnlyWholeMessageConfirms(t *testing.T) {
	for name, test := range map[string]struct {
		object           NetworkFence
		blocks, unblocks bool
	}{
		"fenced":                              {NetworkFence{Result: "Succeeded", Message: "fencing operation successful"}, true, false},
		"unfenced":                            {NetworkFence{Unfenced: true, Result: "Succeeded", Message: "unfencing operation successful"}, false, true},
		"flipped to Fenced, and not done yet": {NetworkFence{Result: "Succeeded", Message: "unfencing operation successful"}, false, false},
		"flipped to Unfenced, not done yet":   {NetworkFence{Unfenced: true, Result: "Succeeded", Message: "fencing operation successful"}, false, false},
		"pending":                             {NetworkFence{}, false, false},
		"pending, Unfenced":                   {NetworkFence{Unfenced: true}, false, false},
		"failed":                              {NetworkFence{Result: "Failed", Message: "fencing operation successful"}, false, false},
		"failed, Unfenced":                    {NetworkFence{Unfenced: true, Result: "Failed", Message: "unfencing operation successful"}, false, false},
		"no result":                           {NetworkFence{Message: "fencing operation successful"}, false, false},
		"an error that says so":               {NetworkFence{Result: "Succeeded", Message: "fencing operation successful."}, false, false},
		"no message":                          {NetworkFence{Result: "Succeeded"}, false, false},
		"deleted":                             {NetworkFence{Deleting: true, Result: "Succeeded", Message: "fencing operation successful"}, false, false},
		"deleted, Unfenced":                   {NetworkFence{Deleting: true, Unfenced: true, Result: "Succeeded", Message: "unfencing operation successful"}, false, true},
	} {
		must.Equal(t, test.object.Blocks(), test.blocks, "%s: blocks", name)
		must.Equal(t, test.object.Unblocks(), test.unblocks, "%s: unblocks", name)
	}
}

func TestNamesOfFences(t *testing.T) {
	lost := func(uid types.UID, boot string, since time.Time) string {
		return incidentOf("node-1", v1alpha1.NodeFenceStatus{Node: v1alpha1.MachineIdentity{UID: uid, BootID: boot}, LostSince: at(since)})
	}
	incident := lost("u", "b", noon)
	must.Equal(t, lost("u", "b", noon), incident)
	n63, long := strings.Repeat("n", 63)+".", strings.Repeat("very-long-name.", 16)+"node"
	all := []string{fenceName("node-1", incident, rbd, "a")}
	for name, other := range map[string]string{
		"another node":            fenceName("node-11", incident, rbd, "a"),
		"another driver":          fenceName("node-1", incident, cephFS, "a"),
		"another cluster":         fenceName("node-1", incident, rbd, "b"),
		"no cluster":              fenceName("node-1", incident, rbd, ""),
		"driver and cluster, one": fenceName("node-1", incident, rbd+"a", ""),
		"a long name":             fenceName(long, incident, rbd, "a"),
		"a name cut at a dot":     fenceName(n63+n63+n63+"nnnnnnn.n", incident, rbd, "a"),
		"another boot":            fenceName("node-1", lost("u", "c", noon), rbd, "a"),
		"a recreated node":        fenceName("node-1", lost("v", "b", noon), rbd, "a"),
		"a second later":          fenceName("node-1", lost("u", "b", noon.Add(time.Second)), rbd, "a"),
	} {
		must.True(t, !slices.Contains(all, other), "%s: %s is taken", name, other)
		all = append(all, other)
	}
	for _, name := range all {
		problems := validation.IsDNS1123Subdomain(name)
		must.True(t, len(problems) == 0, "%s: %v", name, problems)
	}
	for _, boot := range []string{strings.Repeat("b", 100), "another boot", "{5d9f}", "b-"} {
		for _, value := range object(long, boot, v1alpha1.Fence{Incident: incident}, false).Labels {
			problems := validation.IsValidLabelValue(value)
			must.True(t, len(problems) == 0, "%s: %v", value, problems)
		}
	}
}

package fence

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// The text of the one contains that of the other, and a message stays after the
// state has been changed: there is no observed generation.
func TestOnlyWholeMessageConfirms(t *testing.T) {
	for name, test := range map[string]struct {
		object         NetworkFence
		blocks, letsIn bool
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
		if got := test.object.Blocks(); got != test.blocks {
			t.Errorf("%s: blocks %t", name, got)
		}
		if got := test.object.LetIn(); got != test.letsIn {
			t.Errorf("%s: lets in %t", name, got)
		}
	}
	if !strings.Contains(unfencedMessage, fencedMessage) {
		t.Error("if it is so no more, the docs are wrong")
	}
}

func TestNamesOfFences(t *testing.T) {
	lost := v1alpha1.NodeFenceStatus{Node: v1alpha1.MachineIdentity{UID: "u", BootID: "b"}, LostSince: at(noon)}
	incident := incidentOf("node-1", lost)
	long := strings.Repeat("very-long-name.", 16) + "node"
	all := []string{fenceName("node-1", incident, rbd, "a")}
	for name, other := range map[string]string{
		"another node":           fenceName("node-11", incident, rbd, "a"),
		"another driver":         fenceName("node-1", incident, cephFS, "a"),
		"another storage":        fenceName("node-1", incident, rbd, "b"),
		"none":                   fenceName("node-1", incident, rbd, ""),
		"what is run together":   fenceName("node-1", incident, rbd+"a", ""),
		"a node of a long name":  fenceName(long, incident, rbd, "a"),
		"one cut at a dot":       fenceName(strings.Repeat("n", 63)+"."+strings.Repeat("n", 63)+"."+strings.Repeat("n", 63)+"."+strings.Repeat("n", 7)+"."+"n", incident, rbd, "a"),
		"the same on a new boot": fenceName("node-1", incidentOf("node-1", v1alpha1.NodeFenceStatus{Node: v1alpha1.MachineIdentity{UID: "u", BootID: "c"}, LostSince: at(noon)}), rbd, "a"),
		"of a node recreated":    fenceName("node-1", incidentOf("node-1", v1alpha1.NodeFenceStatus{Node: v1alpha1.MachineIdentity{UID: "v", BootID: "b"}, LostSince: at(noon)}), rbd, "a"),
		"lost a second later":    fenceName("node-1", incidentOf("node-1", v1alpha1.NodeFenceStatus{Node: v1alpha1.MachineIdentity{UID: "u", BootID: "b"}, LostSince: at(noon.Add(time.Second))}), rbd, "a"),
	} {
		if slices.Contains(all, other) {
			t.Errorf("%s: %s is taken", name, other)
		}
		all = append(all, other)
	}
	for _, name := range all {
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
	}
	if again := incidentOf("node-1", lost); again != incident {
		t.Errorf("the same incident is %s and %s", incident, again)
	}
	for _, boot := range []string{strings.Repeat("b", 100), "another boot", "{5d9f}", "b-"} {
		for _, value := range object(long, boot, v1alpha1.Fence{Incident: incident}, false).Labels {
			if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
				t.Errorf("%s: %v", value, problems)
			}
		}
	}
}

package fence

import (
	"strings"
	"testing"

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
		t.Run(name, func(t *testing.T) {
			must.Equal(t, test.object.Blocks(), test.blocks, "blocks")
			must.Equal(t, test.object.Unblocks(), test.unblocks, "unblocks")
		})
	}
}

// A leftover must not pass for a fence.
func TestNamesOfFences(t *testing.T) {
	boot, k := bootOf("m", "b"), key{rbd, "a"}
	n63, long := strings.Repeat("n", 63)+".", strings.Repeat("very-long-name.", 16)+"node"
	taken := map[string]string{}
	for what, name := range map[string]string{
		"the first fence":         fenceName("node-1", boot, 1, k),
		"the second fence":        fenceName("node-1", boot, 2, k),
		"another node":            fenceName("node-11", boot, 1, k),
		"another driver":          fenceName("node-1", boot, 1, key{cephFS, "a"}),
		"another cluster":         fenceName("node-1", boot, 1, key{rbd, "b"}),
		"no cluster":              fenceName("node-1", boot, 1, key{rbd, ""}),
		"driver and cluster, one": fenceName("node-1", boot, 1, key{rbd + "a", ""}),
		"a long name":             fenceName(long, boot, 1, k),
		"a name cut at a dot":     fenceName(n63+n63+n63+"nnnnnnn.n", boot, 1, k),
		"another boot":            fenceName("node-1", bootOf("m", "c"), 1, k),
		"another machine":         fenceName("node-1", bootOf("n", "b"), 1, k),
		"a record of a long name": RecordName(long, boot),
	} {
		t.Run(what, func(t *testing.T) {
			must.True(t, taken[name] == "", "%s is the name of %s too", name, taken[name])
			problems := validation.IsDNS1123Subdomain(name)
			must.True(t, len(problems) == 0, "%s: %v", name, problems)
		})
		taken[name] = what
	}
	must.Equal(t, fenceName("node-1", boot, 1, k), fenceName("node-1", boot, 1, k))
	for _, id := range []string{strings.Repeat("b", 100), "another boot", "{5d9f}", "b-"} {
		t.Run("labels of boot "+id, func(t *testing.T) {
			f := Facts{Node: Node{Name: long}, RecordUID: "uid", Spec: v1alpha1.NodeFenceSpec{Boot: bootOf("m", id)}}
			for _, value := range f.newObject(v1alpha1.Fence{}, false).Labels {
				problems := validation.IsValidLabelValue(value)
				must.True(t, len(problems) == 0, "%s: %v", value, problems)
			}
		})
	}
}

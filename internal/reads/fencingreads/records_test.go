package fencingreads

import (
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// Two machines have had one name.
func TestRecordsOfNodeNameAreFound(t *testing.T) {
	first, second, of11 := remembering("node-1", "Drained", "pv-a"), remembering("node-1-2", "Healthy", "pv-b"), remembering("node-11", "Healthy")
	second.Labels[fence.NodeLabel], second.Status.NodeName, second.Status.Ordinal = "node-1", "node-1", 1
	taken := remembering("node-2", "Healthy")
	taken.Status.NodeName = "node-1x"
	c := withHolders(t, first, second, of11, taken)
	for name, test := range map[string]struct {
		*FenceReader
		node  string
		want  []string
		taken bool
	}{
		"of two machines": {readerOf(t, config.Fencing{}, c, c), "node-1", []string{"node-1", "node-1-2"}, false},
		"live":            {now(t, readerOf(t, config.Fencing{}, c, c), "node-1"), "node-1", []string{"node-1", "node-1-2"}, false},
		"of one machine":  {readerOf(t, config.Fencing{}, c, c), "node-11", []string{"node-11"}, false},
		"of none":         {readerOf(t, config.Fencing{}, c, c), "node-3", nil, false},
		"of another node": {readerOf(t, config.Fencing{}, c, c), "node-2", nil, true},
	} {
		sakes := fence.Namesakes{Node: fence.Node{Name: test.node}}
		records, err := test.recordsOf(t.Context(), &sakes)
		var got []string
		for i := range records {
			got = append(got, records[i].Name)
		}
		if err != nil || !slices.Equal(got, test.want) || sakes.Taken != test.taken || len(sakes.Records) != len(got) {
			t.Errorf("%s: got %v, taken %t, %v", name, got, sakes.Taken, err)
		}
	}
}

// The gate sees both machines of a name, even if the caches lack the machine in an incident.
func TestHoldersOfNodeNameAreItsMachines(t *testing.T) {
	node := using("n")
	node.Status.NodeInfo.SystemUUID = "second"
	first, second := remembering("n", "Lost", "pv-a"), remembering("n-2", "Healthy")
	first.Status.Node.SystemUUID, second.Status.NodeName, second.Status.Node.SystemUUID = "first", "n", "second"
	live := withHolders(t, node, first, second)
	check := func(t *testing.T, name string, holders []fence.Holder, err error) {
		t.Helper()
		must.True(t, err == nil && len(holders) == 2, "%s: got %+v, %v", name, holders, err)
		present, gone := holders[0], holders[1]
		if gone.Node.Exists {
			present, gone = gone, present
		}
		if !present.Node.Exists || present.Replaced || gone.Node.Exists || !gone.Replaced || gone.Record != "n" || gone.Status.Phase != v1alpha1.NodeLost {
			t.Errorf("%s: got %+v", name, holders)
		}
	}
	for name, watched := range map[string]client.WithWatch{"known": live, "unknown": withHolders(t)} {
		r, v := watching(t, live, watched), fence.Volume{Name: "pv-a", Driver: rbd, Handle: "h"}
		holders, err := r.Holders(t.Context(), v)
		check(t, name, holders, err)
		holders, err = r.listed(t.Context(), v, map[string]map[string]bool{"n": nil})
		check(t, name+", all listed", holders, err)
	}
	n, record, err := watching(t, live, live).Present(t.Context(), "n")
	must.True(t, err == nil && n.Name == "n" && record.Name == "n-2", "got %+v, %+v, %v", n, record, err)
}

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

// Two boots have had one name.
func TestRecordsOfNodeNameAreFound(t *testing.T) {
	second := recordOf("node-1", "pv-b")
	second.Name = "node-1-2"
	c := withHolders(t, lost(recordOf("node-1", "pv-a")), second, recordOf("node-11"))
	for name, test := range map[string]struct {
		*FenceReader
		node string
		want []string
	}{
		"of two boots": {readerOf(t, config.Fencing{}, c, c), "node-1", []string{"node-1", "node-1-2"}},
		"live":         {now(t, readerOf(t, config.Fencing{}, c, c)), "node-1", []string{"node-1", "node-1-2"}},
		"of one boot":  {readerOf(t, config.Fencing{}, c, c), "node-11", []string{"node-11"}},
		"of none":      {readerOf(t, config.Fencing{}, c, c), "node-3", nil},
	} {
		sakes := fence.Namesakes{Node: fence.Node{Name: test.node}}
		records, err := test.recordsOf(t.Context(), &sakes)
		var got []string
		for i := range records {
			got = append(got, records[i].Name)
		}
		if err != nil || !slices.Equal(got, test.want) || len(sakes.Records) != len(got) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}

// The gate sees both machines of a name, even if the caches lack the machine in an incident.
func TestHoldersOfNodeNameAreItsMachines(t *testing.T) {
	first, second := lost(recordOf("n", "pv-a")), recordOf("n")
	first.Spec.Boot, second.Name = v1alpha1.Boot{SystemUUID: "first", BootID: "first"}, "n-2"
	live := withHolders(t, using("n"), first, second)
	check := func(t *testing.T, name string, holders []fence.Holder, err error) {
		t.Helper()
		must.True(t, err == nil && len(holders) == 2, "%s: got %+v, %v", name, holders, err)
		present, gone := holders[0], holders[1]
		if gone.Node.Exists {
			present, gone = gone, present
		}
		if !present.Node.Exists || present.Replaced || gone.Node.Exists || !gone.Replaced || gone.Record != "n" || gone.Spec.LostSince == nil {
			t.Errorf("%s: got %+v", name, holders)
		}
	}
	for name, watched := range map[string]client.WithWatch{"known": live, "unknown": withHolders(t)} {
		r, v := watching(t, live, watched), fence.Volume{Name: "pv-a", Driver: rbd, Handle: "a"}
		holders, err := r.Holders(t.Context(), v)
		check(t, name, holders, err)
		holders, err = r.listed(t.Context(), v, map[string]map[string]bool{"n": nil})
		check(t, name+", all listed", holders, err)
	}
	n, record, err := watching(t, live, live).Present(t.Context(), "n")
	must.True(t, err == nil && n.Name == "n" && record.Name == "n-2", "got %+v, %+v, %v", n, record, err)
}

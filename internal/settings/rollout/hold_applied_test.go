package rollout

import (
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestHoldsApplied(t *testing.T) {
	onCluster, headless := service("pvc-a", clusterNet), service("pvc-a", netOne)
	optedOut := onCluster
	optedOut.OptOut = true
	on := Record{Clients: netOne, Servers: netOne}
	for name, test := range map[string]struct {
		value   multus.Attachment
		record  Record
		service rwx.Service
		volume  rwx.Volume
		want    string
	}{
		"everything is on the network":                 {netOne, on, headless, attached("pvc-a"), ""},
		"an attached volume has a cluster IP":          {netOne, on, onCluster, attached("pvc-a"), "volume pvc-a is attached"},
		"a detached volume has one":                    {netOne, on, onCluster, rwx.Volume{Name: "pvc-a", Shared: true}, ""},
		"a volume has one that opts out":               {netOne, on, optedOut, attached("pvc-a"), ""},
		"clients are on their way":                     {netOne, Record{Clients: netOne}, headless, attached("pvc-a"), "Services of new volumes"},
		"nothing is recorded yet":                      {netOne, Record{Unknown: true}, onCluster, attached("pvc-a"), ""},
		"the storage system asks for no network":       {clusterNet, Record{}, onCluster, attached("pvc-a"), ""},
		"an attached volume that is not shared has it": {netOne, on, onCluster, rwx.Volume{Name: "pvc-a", Attached: true}, ""},
	} {
		got := HoldsApplied(test.value, test.record, []rwx.Service{test.service}, []rwx.Volume{test.volume})
		must.Check(t, (test.want != "" || got == "") && strings.HasPrefix(got, test.want), "%s: got %q, want %q", name, got, test.want)
	}
}

package fences

import (
	"testing"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/cli/clitest"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

// During an incident it is too late to find a missing right.
func TestFenceViewersMayReadWhatDrillsRead(t *testing.T) {
	funcs, reads := clitest.CheckReads(t, map[string]string{"components/fencing": "fairlead-fence-viewer"})
	live := clitest.Client(t, funcs, drillWorld(drillRecord(clientOf(objects.RBD, "rbd", "10.0.0.1/32")))...)
	drill(t, live, cli.OutputTable, "node-1", exitUnfenceable)
	_, _, err := (&cli.ClientOptions{}).Configuration(t.Context(), live)
	must.Do(t, err)
	must.Check(t, reads["pods"] && reads["csidrivers"] && reads["networkfences"] && len(reads) >= 10, "the drill read only %v", reads)
}

// The volumes that a taint would detach are read too, where a node is lost.
func TestFenceViewersMayReadAttachmentsOfLostNodes(t *testing.T) {
	funcs, reads := clitest.CheckReads(t, map[string]string{"components/fencing": "fairlead-fence-viewer"})
	show(t, clitest.Client(t, funcs, lostRecord(v1alpha1.NodeFenceSpec{})), cli.OutputTable, cli.ExitWaits)
	must.Check(t, reads["volumeattachments"], "the command read only %v", reads)
}

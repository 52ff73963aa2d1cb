package nfs

import (
	"io"
	"testing"

	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/cli/clitest"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestNFSViewersMayReadWhatIsShown(t *testing.T) {
	funcs, reads := clitest.CheckReads(t, map[string]string{"components/nfs": "fairlead-nfs-viewer"})
	reader := nfsReaderOf(t, funcs, nfsWorld()...)
	for _, args := range [][]string{nil, {"storage/files"}} {
		must.Do(t, showNFS(t.Context(), io.Discard, reader, cli.OutputTable, args, clitest.Noon))
	}
	must.Do(t, showNFSPlan(t.Context(), io.Discard, reader, cli.OutputTable, []string{"fast/one"}, nfsChanges{}))
	_, _, err := (&cli.ClientOptions{}).Configuration(t.Context(), clitest.Client(t, funcs))
	must.Do(t, err)
	for _, resource := range []string{"nfsservices", "persistentvolumes", "volumeattachments", "nodes", "configmaps"} {
		must.Check(t, reads[resource], "%s were not read: %v", resource, reads)
	}
}

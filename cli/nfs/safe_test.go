package nfs

import (
	"io"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/cli/clitest"
	"github.com/fairlead-io/fairlead/internal/nfs/plan"
)

func TestNoValueSteersTerminalOfNFS(t *testing.T) {
	now := time.Now()
	clitest.CheckSafe(t, clitest.Spoiled[nfsViews](), func(out io.Writer) error { return writeNFS(out, clitest.Spoiled[nfsViews]().Data, now) })
	clitest.CheckSafe(t, clitest.Spoiled[View](), func(out io.Writer) error { return writeNFSService(out, clitest.Spoiled[View](), now) })
	clitest.CheckSafe(t, clitest.Spoiled[plan.Plan](), func(out io.Writer) error { return writeNFSPlan(out, clitest.Spoiled[plan.Plan]()) })
}

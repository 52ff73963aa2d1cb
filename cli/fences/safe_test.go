package fences

import (
	"io"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/cli/clitest"
)

func TestNoValueSteersTerminalOfFences(t *testing.T) {
	now := time.Now()
	clitest.CheckSafe(t, clitest.Spoiled[viewList](), func(out io.Writer) error { writeFences(out, clitest.Spoiled[viewList]().Data, now); return nil })
	clitest.CheckSafe(t, clitest.Spoiled[View](), func(out io.Writer) error { writeFence(out, clitest.Spoiled[viewList]().Data, now); return nil })
	clitest.CheckSafe(t, clitest.Spoiled[drillView](), func(out io.Writer) error { writeDrill(out, clitest.Spoiled[drillView]()); return nil })
}

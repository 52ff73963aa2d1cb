package fences

import (
	"io"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/cli/clitest"
)

func TestNoValueSteersTerminalOfFences(t *testing.T) {
	now := time.Now()
	clitest.CheckSafe(t, clitest.Spoiled[viewList](), func(out io.Writer) error { return writeFences(out, clitest.Spoiled[viewList]().Data, now) })
	clitest.CheckSafe(t, clitest.Spoiled[View](), func(out io.Writer) error { return writeFence(out, clitest.Spoiled[viewList]().Data, now) })
	clitest.CheckSafe(t, clitest.Spoiled[drillView](), func(out io.Writer) error { return writeDrill(out, clitest.Spoiled[drillView]()) })
}

package plan

import (
	"io"
	"testing"

	"github.com/fairlead-io/fairlead/cli/clitest"
)

func TestNoValueSteersTerminalOfPlan(t *testing.T) {
	plan, unchanged := clitest.Spoiled[View](), clitest.Spoiled[View]()
	plan.Settings = append(plan.Settings, plan.Settings[0], plan.Settings[0])
	plan.Settings[0].Changed, plan.Settings[1].appliedNow = true, true
	clitest.CheckSafe(t, unchanged, func(out io.Writer) error { writePlan(out, plan); return nil })
	clitest.CheckSafe(t, unchanged, func(out io.Writer) error { writePlan(out, unchanged); return nil })
}

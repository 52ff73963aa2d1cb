package settings

import (
	"io"
	"testing"
	"time"

	v1 "github.com/fairlead-io/fairlead/api/rest/v1"
	"github.com/fairlead-io/fairlead/cli/clitest"
)

func TestNoValueSteersTerminal(t *testing.T) {
	clitest.CheckSafe(t, clitest.Spoiled[v1.SettingList](), func(out io.Writer) error { writeSettings(out, clitest.Spoiled[[]v1.Setting](), time.Now()); return nil })
	clitest.CheckSafe(t, clitest.Spoiled[v1.Setting](), func(out io.Writer) error { writeSetting(out, clitest.Spoiled[v1.Setting](), time.Now()); return nil })
}

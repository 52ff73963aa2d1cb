package status

import (
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/cli/clitest"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestMaintenanceWindowsAreShown(t *testing.T) {
	c, err := config.Parse([]byte("apiVersion: config.fairlead.io/v1alpha1\nkind: Configuration\nlonghorn: {maintenanceWindows: [{days: [Sun], start: '22:00', length: 4h}]}\n"))
	must.Do(t, err)
	w := windowsOf(c.Longhorn, clitest.Noon) // a Thursday
	must.Equal(t, w.Configured, []string{"Sun 22:00 for 4h0m0s (UTC)"})
	must.Equal(t, w.OpensText(), "2026-01-04T22:00:00Z")
	must.True(t, windowsOf(c.Longhorn, clitest.Noon.Add(83*time.Hour)).Opens == nil, "the window is closed on Sunday at 23:00")
	must.True(t, windowsOf(c.Longhorn, clitest.Noon.Add(87*time.Hour)).Opens != nil, "the window is open on Monday at 03:00")
}

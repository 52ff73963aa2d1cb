package cli

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestSourcesWithFunctionsAreLogged(t *testing.T) {
	var out strings.Builder
	o := ClusterOptions{logLevel: "info", logFormat: "json"}
	log, err := o.logger(&out)
	must.Do(t, err)
	log.Info("x", "source", struct{ F func() }{}, "level", slog.LevelWarn)
	must.True(t, strings.Contains(out.String(), `"source":"struct { F func() }"`) && !strings.Contains(out.String(), "ERROR"), "got %s", out.String())
}

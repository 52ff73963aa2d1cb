package planner

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/fixedruns"
)

// The rarest fault of the gates (a forgotten revision of a template) took 3,300 runs of 100 steps to show.
func TestMain(m *testing.M) { fixedruns.Main(m, 4000, 100) }

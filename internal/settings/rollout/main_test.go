package rollout

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/fixedruns"
)

// The rarest fault of the gates took as many runs to appear.
func TestMain(m *testing.M) { fixedruns.Main(m, 4000, 100) }

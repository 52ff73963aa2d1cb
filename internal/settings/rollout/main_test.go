package rollout

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/fixedruns"
)

// As many runs as the rarest fault of the gates took to show.
func TestMain(m *testing.M) { fixedruns.Main(m, 4000, 100) }

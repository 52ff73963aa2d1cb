package workloads

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/fixedruns"
)

// Most faults of the controller show within 50 runs of the property test. The rarest took up to 750, which is two
// minutes with the race detector: make soak makes such runs.
func TestMain(m *testing.M) { fixedruns.Main(m, 120, 60) }

package multus

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/fixedruns"
)

// TestMain makes 1000 runs of each property test: two servers with one address are rare.
func TestMain(m *testing.M) { fixedruns.Main(m, 1000, 30) }

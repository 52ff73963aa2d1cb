package fence

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/fixedruns"
)

// TestMain makes the property test long enough; docs of what it catches are in
// property_test.go. Its runs are the same each time; make soak looks for rare ones.
func TestMain(m *testing.M) { fixedruns.Main(m, 400, 100) }

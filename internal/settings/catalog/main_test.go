package catalog

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/fixedruns"
)

// A few percent of generated values are valid.
func TestMain(m *testing.M) { fixedruns.Main(m, 2000, 100) }

package catalog

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/fixedruns"
)

// Generators of spellings draw a valid one in a few runs of a hundred.
func TestMain(m *testing.M) { fixedruns.Main(m, 2000, 100) }

package taint

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/fixedruns"
)

func TestMain(m *testing.M) { fixedruns.Main(m, 400, 100) }

package storage

import (
	"fmt"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestVersionBefore(t *testing.T) {
	for versions, want := range map[[2]string]string{
		{"v1.7.0", "1.10"}: "true true", {"v1.10.0-rc1", "1.10"}: "false true", {"1.12.3", "1.10"}: "false true", {"v2.0.0", "1.10"}: "false true", {"v0.8.1", "1.1"}: "true true",
		{"", "1.10"}: "false", {"master", "1.10"}: "false", {"v1.7.0", ""}: "false",
	} {
		before, known := VersionBefore(versions[0], versions[1])
		got := fmt.Sprint(before, known)
		must.Check(t, got == want || !known && want == "false", "%q: got %s, want %s", versions, got, want)
	}
}

package metricnames

import (
	"fmt"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// failures of a test.
type failures struct{ list []string }

func (f *failures) Helper() {}
func (f *failures) Errorf(format string, args ...any) {
	f.list = append(f.list, fmt.Sprintf(format, args...))
}
func (f *failures) Fatalf(format string, args ...any) { f.Errorf(format, args...) }

func TestOnlyMetricsOfTheCodeAreServed(t *testing.T) {
	served := Read(t, "../../..")
	for text, want := range map[string][]string{
		"`fairlead_dead_mounts` and fairlead_nfs_probe_duration_seconds_bucket{le=\"1\"}": nil,
		"storageos_api_requests_total, kubectl-fairlead_OS_ARCH.tar.gz":                   nil,
		"fairlead_dead_mount": {"page: no code serves fairlead_dead_mount"},
		"fairlead_dead":       {"page: no code serves fairlead_dead"},
	} {
		f := &failures{}
		must.Equal(t, served.Check(f, "page", text) > 0, true, text)
		must.Equal(t, f.list, want, text)
	}
}

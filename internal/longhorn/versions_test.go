package longhorn

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestDutiesFollowTheVersion(t *testing.T) {
	for version, want := range map[string]string{
		"v0.8.1": "|1.7", "v1.5.4": "|1.7", "1.6.2": "|1.7", "v1.7.0": "1.7|1.11", "v1.10.2": "1.7|1.11", "v1.11.0": "1.11|", "1.12.0-rc1": "1.11|", "v2.0.0": "1.11|", "1.11-dev": "1.11|",
		"": "unknown", "master": "unknown", "v1": "unknown", "1.x": "unknown", "-1.7": "unknown",
	} {
		row, ok := DutiesFor(versions(), version)
		got := row.From + "|" + row.Before
		if !ok {
			got = "unknown"
		}
		must.Equal(t, got, want, "%q", version)
	}
}

func versionRange(d VersionDuties) string {
	switch {
	case d.From == "":
		return "before " + d.Before
	case d.Before == "":
		return d.From + " and later"
	}
	return d.From + " to before " + d.Before
}

// The documentation shows the table that the code goes by.
func TestTheTableOfVersionsIsDocumented(t *testing.T) {
	docs, err := os.ReadFile("../../docs/reference/duties.md")
	must.Do(t, err)
	for _, row := range versions() {
		want := fmt.Sprintf("- **%s**: Longhorn %s.\n  Set `settings: %s`, `pods: %s`, `services: %s`, `endpoints: %s`, `workloads: %s`, `remount: %s`.", versionRange(row), row.Does,
			row.Duties[DutySettings], row.Duties[DutyPods], row.Duties[DutyServices], row.Duties[DutyEndpoints], row.Duties[DutyWorkloads], row.Duties[DutyRemount])
		must.Check(t, strings.Contains(string(docs), want), "docs/reference/duties.md lacks this entry:\n%s", want)
	}
}

func FuzzDutiesFor(f *testing.F) {
	for _, seed := range []string{"v1.7.0", "1.", ".1", "1.99999999999999999999", "v1.7.0.0", " 1.8 "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, version string) {
		if row, ok := DutiesFor(versions(), version); ok && row.Duties[DutySettings] == "" {
			t.Errorf("%q is in no row", version)
		}
	})
}

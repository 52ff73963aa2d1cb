package storage

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestDutiesFollowTheVersion(t *testing.T) {
	for version, want := range map[string]string{
		"v1.5.4": "|1.7", "1.6.2": "|1.7", "v1.7.0": "1.7|1.11", "v1.10.2": "1.7|1.11", "v1.11.0": "1.11|", "1.12.0-rc1": "1.11|", "v2.0.0": "1.11|", "1.11-dev": "1.11|",
		"": "unknown", "master": "unknown", "v1": "unknown", "1.x": "unknown", "-1.7": "unknown",
	} {
		row, ok := DutiesFor(LonghornVersions(), version)
		got := row.From + "|" + row.Before
		if !ok {
			got = "unknown"
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", version, got, want)
		}
	}
}

func TestVersionBefore(t *testing.T) {
	for versions, want := range map[[2]string]string{
		{"v1.7.0", "1.10"}: "true true", {"v1.10.0-rc1", "1.10"}: "false true", {"1.12.3", "1.10"}: "false true", {"v2.0.0", "1.10"}: "false true", {"v0.8.1", "1.1"}: "true true",
		{"", "1.10"}: "false", {"master", "1.10"}: "false", {"v1.7.0", ""}: "false",
	} {
		before, known := VersionBefore(versions[0], versions[1])
		if got := fmt.Sprint(before, known); got != want && (known || want != "false") {
			t.Errorf("%q: got %s, want %s", versions, got, want)
		}
	}
}

// The documentation shows the table that the code goes by.
func TestTheTableOfVersionsIsDocumented(t *testing.T) {
	docs, err := os.ReadFile("../../docs/reference/duties.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range LonghornVersions() {
		want := fmt.Sprintf("- **%s**: Longhorn %s.\n  Set `settings: %s`, `pods: %s`, `services: %s`, `endpoints: %s`, `workloads: %s`, `remount: %s`.", row.Range(), row.Does,
			row.Duties[DutySettings], row.Duties[DutyPods], row.Duties[DutyServices], row.Duties[DutyEndpoints], row.Duties[DutyWorkloads], row.Duties[DutyRemount])
		if !strings.Contains(string(docs), want) {
			t.Errorf("docs/reference/duties.md lacks this entry:\n%s", want)
		}
	}
}

func FuzzDutiesFor(f *testing.F) {
	for _, seed := range []string{"v1.7.0", "1.", ".1", "1.99999999999999999999", "v1.7.0.0", " 1.8 "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, version string) {
		if row, ok := DutiesFor(LonghornVersions(), version); ok && row.Duties[DutySettings] == "" {
			t.Errorf("%q is in no row", version)
		}
	})
}

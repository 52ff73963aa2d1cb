package catalog

import (
	"slices"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestSettingsOfLaterVersionsAreUnknown(t *testing.T) {
	system := map[Name]string{"z-of-1.13": "", "a-of-1.13": "true", "Backup-Target": ""}
	for _, name := range harmless {
		system[Name(name)] = ""
	}
	for _, d := range All() {
		system[d.Name] = d.Default
	}
	must.Equal(t, Unknown(system), []Name{"Backup-Target", "a-of-1.13", "z-of-1.13"})
	must.Equal(t, Unknown(nil), nil)
}

func TestHarmlessSettingsAreInNoOtherList(t *testing.T) {
	must.Check(t, slices.IsSorted(harmless) && len(slices.Compact(slices.Clone(harmless))) == len(harmless), "not sorted, or with a duplicate")
	for _, name := range harmless {
		_, known := Lookup(name)
		must.Check(t, !known, "%s is in the catalog", name)
	}
}

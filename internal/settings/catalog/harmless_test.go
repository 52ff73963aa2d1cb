package catalog

import (
	"slices"
	"testing"
)

func TestSettingsOfLaterVersionsAreUnknown(t *testing.T) {
	system := map[Name]string{"z-of-1.13": "", "a-of-1.13": "true", "Backup-Target": ""}
	for _, name := range harmless {
		system[Name(name)] = ""
	}
	for _, d := range All() {
		system[d.Name] = d.Default
	}
	if got, want := Unknown(system), []Name{"Backup-Target", "a-of-1.13", "z-of-1.13"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Unknown(nil); got != nil {
		t.Errorf("of no settings: %q", got)
	}
}

func TestHarmlessSettingsAreInNoOtherList(t *testing.T) {
	if !slices.IsSorted(harmless) || len(slices.Compact(slices.Clone(harmless))) != len(harmless) {
		t.Error("not in order, or with a name twice")
	}
	for _, name := range harmless {
		if _, known := Lookup(name); known {
			t.Errorf("%s is in another list", name)
		}
	}
}

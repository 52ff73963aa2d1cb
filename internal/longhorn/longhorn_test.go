package longhorn

import "testing"

func TestProfilesShareNoState(t *testing.T) {
	DefaultNames().ServerLabels["longhorn.io/component"] = "changed"
	if got := DefaultNames().ServerLabels["longhorn.io/component"]; got != "share-manager" {
		t.Fatalf("got %q", got)
	}
}

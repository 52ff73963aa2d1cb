package longhorn

import "testing"

func TestProfilesShareNoState(t *testing.T) {
	Profile().ServerLabels["longhorn.io/component"] = "changed"
	if got := Profile().ServerLabels["longhorn.io/component"]; got != "share-manager" {
		t.Fatalf("got %q", got)
	}
}

package rollout

import (
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

import "testing"

// The words of the "How it should feel".
func TestWarningOfAPendingChange(t *testing.T) {
	blockers := []catalog.Blocker{{Kind: catalog.BlockedByVolume, Name: "pvc-117d3553", Nodes: []string{"node-2"}, Workloads: []string{"default/web-0"}}}
	const want = "accepted; will be applied when these RWX volumes are detached: pvc-117d3553 (node-2, pod default/web-0). Then 3 CSI plugin pods restart."
	if got := PendingWarning(blockers, 3); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := catalog.Short(blockers), "1 RWX volume attached: pvc-117d3553"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWarningCountsOnePod(t *testing.T) {
	if got, want := PendingWarning([]catalog.Blocker{{Kind: catalog.BlockedByVolume, Name: "pvc-a"}}, 1), "accepted; will be applied when these RWX volumes are detached: pvc-a. Then 1 CSI plugin pod restarts."; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := RollingWarning(1), "accepted; no RWX volume is attached, so it is applied now: 1 CSI plugin pod restarts"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := RollingWarning(3), "accepted; no RWX volume is attached, so it is applied now: 3 CSI plugin pods restart"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

package rollout

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestWarnings(t *testing.T) {
	volume := catalog.Blocker{Kind: catalog.BlockedByVolume, Name: "pvc-117d3553", Nodes: []string{"node-2"}, Workloads: []string{"default/web-0"}}
	one := onCluster()
	one.Clients = one.Clients[:1]
	for got, want := range map[string]string{
		PendingWarning([]catalog.Blocker{volume}, 3): "accepted; will be applied when these RWX volumes are detached: pvc-117d3553 (node-2, pod default/web-0). Then 3 CSI plugin pods restart.",
		PendingWarning([]catalog.Blocker{volume}, 1): "accepted; will be applied when these RWX volumes are detached: pvc-117d3553 (node-2, pod default/web-0). Then 1 CSI plugin pod restarts.",
		catalog.Short([]catalog.Blocker{volume}):     "1 RWX volume attached: pvc-117d3553",
		ApplyingWarning(one):                         "accepted; being applied now: 1 CSI plugin pod restarts",
		ApplyingWarning(onCluster()):                 "accepted; being applied now: 2 CSI plugin pods restart",
	} {
		must.Equal(t, got, want)
	}
}

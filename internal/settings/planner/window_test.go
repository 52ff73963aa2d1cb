package planner

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

// closedWindow opens ten hours after midday.
func closedWindow(f *Facts) {
	f.Rollout.Windows = rollout.Windows{{Start: 22 * time.Hour, Length: time.Hour, Location: time.UTC}}
}

func TestWindowIsNamedOnce(t *testing.T) {
	const opens = "restarts begin in a maintenance window only; the next opens at 2026-01-01T22:00:00Z"
	one := objects.Network("one", longhorn.DefaultNames().StorageInterface)
	network := []change{set(catalog.StorageNetwork, one.Network.String()), set(catalog.StorageNetworkForRWX, "true")}
	begun := func(f *Facts) {
		f.Rollout.Record.Clients, f.Rollout.DaemonSet.Network, f.Rollout.DaemonSet.Paused = one, one, true
		f.Rollout.DaemonSet.Revision = "8"
		f.Rollout.Clients[0].Network, f.Rollout.Clients[0].Reported = one, true
	}
	rwxInUse := func(f *Facts) {
		f.Rollout.Volumes = []rwx.Volume{{Name: "pvc-a", Shared: true, Attached: true, Nodes: []string{"node-1"}}}
	}
	for name, test := range map[string]struct {
		setting catalog.Name
		changes []change
		want    string
	}{
		"components": {catalog.PriorityClass, []change{set(catalog.PriorityClass, critical)},
			"waiting: " + opens + ". Then 2 Deployments and 2 DaemonSets roll, 1 backing image manager and 3 instance managers restart one by one"},
		"components and volumes": {catalog.PriorityClass, []change{set(catalog.PriorityClass, critical), func(f *Facts) {
			f.Rollout.Volumes = []rwx.Volume{{Name: "pvc-b", Attached: true, Nodes: []string{"node-1"}}}
			for i := range f.Components {
				if f.Components[i].Kind == catalog.InstanceManager {
					f.Components[i].Uses = []string{"pvc-b-e-0"}
				}
			}
		}}, "will be applied when these volumes are detached: pvc-b (node-1); also waiting: " + opens + ". Then 2 Deployments and 2 DaemonSets roll, 1 backing image manager and 3 instance managers restart one by one"},
		"components and clients": {catalog.StorageNetwork, network,
			"waiting: " + opens + ". Then 1 backing image manager and 3 instance managers restart one by one"},
		"clients that have begun": {catalog.StorageNetwork, append(network, begun),
			"1 of 2 CSI plugin pods on the network; waiting: " + opens + ". Then 1 backing image manager and 3 instance managers restart one by one"},
		"clients that wait for volumes first": {catalog.StorageNetwork, append(network, rwxInUse),
			"will be applied when these volumes are detached: pvc-a (node-1); also waiting: " + opens + ". Then 1 backing image manager and 3 instance managers restart one by one"},
		"clients": {catalog.StorageNetworkForRWX, network, opens},
	} {
		t.Run(name, func(t *testing.T) {
			p := Make(fleet(append(test.changes, closedWindow)...))
			s, _ := p.Setting(test.setting)
			must.Equal(t, s.Message, test.want)
			must.Equal(t, strings.Count(namesOf(s.Blockers), "maintenanceWindows"), 1)
			must.Equal(t, p.After, 10*time.Hour)
		})
	}
}

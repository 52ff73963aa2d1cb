package validators

import (
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// Seen with longhorn-manager v1.7.2: after the change, no pod that starts can mount.
func TestLeavingNetworkWarnsOfFailingMounts(t *testing.T) {
	onNetwork := rwx.Service{Name: "pvc-117d3553", Volume: "pvc-117d3553", ClusterIP: rwx.ClusterIPNone, Recorded: storageNet}
	onCluster := rwx.Service{Name: "pvc-117d3553", Volume: "pvc-117d3553", ClusterIP: "10.96.0.9"}
	for name, test := range map[string]struct {
		was, is          string
		service          rwx.Service
		attached, warned bool
	}{
		"served on the network":         {"true", "false", onNetwork, true, true},
		"served on the cluster network": {"true", "false", onCluster, true, false},
		"mounts are there already":      {"false", "false", onNetwork, true, false},
		"detached":                      {"true", "false", onNetwork, false, false},
		"enabled: clients reach both":   {"false", "true", onCluster, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			facts := SettingFacts{Applies: true}
			facts.Names = longhorn.DefaultNames()
			facts.SystemValues = values{catalog.StorageNetwork: "kube-system/storage-net", catalog.StorageNetworkForRWX: test.was}
			facts.Rollout.Volumes = []rwx.Volume{webVolume}
			facts.Rollout.Volumes[0].Attached = test.attached
			facts.Rollout.Record = rollout.Record{Clients: storageNet, Servers: storageNet}
			facts.Rollout.Services = []rwx.Service{test.service}
			v := ValidateSetting(settingOf(catalog.StorageNetworkForRWX, test.is), nil, facts)
			warned := strings.Contains(strings.Join(v.Warnings, "\n"), "Pods that start cannot mount pvc-117d3553")
			must.True(t, warned == test.warned && len(v.Problems) == 0, "%q, %v", v.Warnings, v.Problems)
		})
	}
}

package validators

import (
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// Seen beside longhorn-manager v1.7.2: after the change, no pod that starts can mount.
func TestNewMountsThatFailWhileLeavingAreWarnedOf(t *testing.T) {
	network := storage.Attachment{Network: storage.Network{Namespace: "kube-system", Name: "storage-net"}, Interface: "lhnet1"}
	onNetwork := storage.Service{Name: "pvc-117d3553", Volume: "pvc-117d3553", ClusterIP: storage.ClusterIPNone, Recorded: network}
	onCluster := storage.Service{Name: "pvc-117d3553", Volume: "pvc-117d3553", ClusterIP: "10.96.0.9"}
	detached := webVolume
	detached.Attached = false
	for name, test := range map[string]struct {
		was, is string
		service storage.Service
		volume  storage.Volume
		warned  bool
	}{
		"served on the network":         {"true", "false", onNetwork, webVolume, true},
		"served on the cluster network": {"true", "false", onCluster, webVolume, false},
		"detached":                      {"true", "false", onNetwork, detached, false},
		"enabled: clients reach both":   {"false", "true", onCluster, webVolume, false},
	} {
		t.Run(name, func(t *testing.T) {
			facts := SettingFacts{Applies: true}
			facts.Profile = storage.Longhorn()
			facts.SystemValues = values{catalog.StorageNetwork: "kube-system/storage-net", catalog.StorageNetworkForRWX: test.was}
			facts.Volumes = []storage.Volume{test.volume}
			facts.Rollout.Record = rollout.Record{Clients: network, Servers: network}
			facts.Rollout.Services = []storage.Service{test.service}
			var s Setting
			s.Metadata.Name, s.Value = string(catalog.StorageNetworkForRWX), &test.is
			verdict := ValidateSetting(s, nil, facts)
			warned := strings.Contains(strings.Join(verdict.Warnings, "\n"), "Pods that start cannot mount pvc-117d3553")
			if warned != test.warned || len(verdict.Problems) > 0 {
				t.Fatalf("%q, %v", verdict.Warnings, verdict.Problems)
			}
		})
	}
}

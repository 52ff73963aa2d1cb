package validators

import (
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/settings"
	"github.com/fairlead-io/fairlead/storage"
)

// Seen beside longhorn-manager v1.7.2: an attached volume faulted 20 s after such a change.
func TestLeavingStorageNetworkUnderReplicasIsWarnedOf(t *testing.T) {
	const a, b = "kube-system/storage-net", "kube-system/backup-net"
	for name, test := range map[string]struct {
		was, is string
		own     bool
		volumes []storage.Volume
		warned  bool
	}{
		"another network": {a, b, false, []storage.Volume{webVolume}, true},
		"no network":      {a, "", false, []storage.Volume{webVolume}, true},
		"the first network: pods without it are found by their own address": {"", a, false, []storage.Volume{webVolume}, false},
		"the same in other words":                      {a, " " + a, false, []storage.Volume{webVolume}, false},
		"no volume is attached":                        {a, b, false, nil, false},
		"Fairlead's own, which Longhorn does not read": {a, b, true, []storage.Volume{webVolume}, false},
	} {
		t.Run(name, func(t *testing.T) {
			facts := func(value string) SettingFacts {
				f := SettingFacts{Own: test.own}
				f.Profile = storage.Longhorn()
				f.SystemValues, f.Volumes = map[settings.Name]string{settings.StorageNetwork: value}, test.volumes
				return f
			}
			d, _ := settings.Lookup(string(settings.StorageNetwork))
			var v Verdict
			v.warnOfReplicas(d, facts(test.was), facts(test.is))
			if warned := len(v.Warnings) == 1 && strings.Contains(v.Warnings[0], "attached volumes can fault: pvc-117d3553"); warned != test.warned || len(v.Warnings) > 1 {
				t.Fatalf("warnings %q", v.Warnings)
			}
		})
	}
}

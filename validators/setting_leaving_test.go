package validators

import (
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// Seen beside longhorn-manager v1.7.2: an attached volume faulted 20 s after such a change.
func TestStorageNetworkIsNotLeftUnderReplicas(t *testing.T) {
	const (
		a, b   = "kube-system/storage-net", "kube-system/backup-net"
		lhnet1 = "@lhnet1"
	)
	attached := []storage.Volume{webVolume}
	for name, test := range map[string]struct {
		was, is string
		built   string // of the instance manager
		volumes []storage.Volume
		// idle: the instance manager runs nothing; elsewhere: another one, on no network, runs the volume.
		idle, elsewhere bool
		refused         bool
	}{
		"for another network":                         {was: a, is: b, built: a + lhnet1, volumes: attached, refused: true},
		"for no network":                              {was: a, is: "", built: a + lhnet1, volumes: attached, refused: true},
		"a first network":                             {was: "", is: a, built: "", volumes: attached},
		"a waiting first network is taken back":       {was: a, is: "", built: "", volumes: attached},
		"a waiting other network is taken back":       {was: b, is: a, built: a + lhnet1, volumes: attached},
		"no volume is attached":                       {was: a, is: b, built: a + lhnet1},
		"a volume on its way, instance managers idle": {was: a, is: b, built: a + lhnet1, volumes: attached, idle: true, refused: true},
		"the volume runs elsewhere":                   {was: a, is: b, built: a + lhnet1, volumes: attached, idle: true, elsewhere: true},
	} {
		t.Run(name, func(t *testing.T) {
			facts := SettingFacts{Applies: true, NetworksKnown: false}
			facts.Profile = storage.Longhorn()
			facts.SystemValues, facts.Volumes = values{catalog.StorageNetwork: test.was}, test.volumes
			manager := catalog.Component{Kind: catalog.InstanceManager, Name: "instance-manager-1", Built: map[catalog.Trait]string{catalog.StorageAttachment: test.built}}
			if !test.idle {
				manager.Uses = []string{"pvc-117d3553-r-1"}
			}
			facts.Components = []catalog.Component{manager}
			if test.elsewhere {
				facts.Components = append(facts.Components, catalog.Component{Kind: catalog.InstanceManager, Name: "instance-manager-2", Uses: []string{"pvc-117d3553-e-0"}})
			}
			var s Setting
			s.Metadata.Name, s.Value = string(catalog.StorageNetwork), &test.is
			verdict := ValidateSetting(s, nil, facts)
			if refused := verdict.Reason == ReasonReplicasOnNetwork; refused != test.refused || refused != (len(verdict.Problems) > 0) {
				t.Fatalf("%s: %v", verdict.Reason, verdict.Problems)
			}
			if test.refused && !strings.Contains(verdict.Problems[0].Detail, "(in instance-manager-1) at once, before the value is applied. Attached: pvc-117d3553 (node-2, pod default/web-0); stop the workloads") {
				t.Fatal(verdict.Problems)
			}
		})
	}
}

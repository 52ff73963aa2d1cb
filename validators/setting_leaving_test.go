package validators

import (
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// Seen with longhorn-manager v1.7.2: an attached volume faulted 20 s after such a change.
func TestStorageNetworkIsNotLeftUnderReplicas(t *testing.T) {
	const a, b, onA = "kube-system/storage-net", "kube-system/backup-net", "kube-system/storage-net@lhnet1"
	manager := func(name, built string, uses ...string) catalog.Component {
		return catalog.Component{Kind: catalog.InstanceManager, Name: name, Built: map[catalog.Trait]string{catalog.StorageAttachment: built}, Uses: uses}
	}
	busy := func(built string) []catalog.Component {
		return []catalog.Component{manager("instance-manager-1", built, "pvc-117d3553-r-1")}
	}
	idle := []catalog.Component{manager("instance-manager-1", onA)}
	elsewhere := append(slices.Clone(idle), manager("instance-manager-2", "", "pvc-117d3553-e-0"))
	for name, test := range map[string]struct {
		was, is  string
		managers []catalog.Component
		detached bool
		starting bool // another volume
		refused  bool
	}{
		"to another network":            {was: a, is: b, managers: busy(onA), refused: true},
		"to the cluster network":        {was: a, is: "", managers: busy(onA), refused: true},
		"first network":                 {was: "", is: a, managers: busy("")},
		"waiting network is taken back": {was: a, is: "", managers: busy("")},
		"waiting change is taken back":  {was: b, is: a, managers: busy(onA)},
		"no volume is attached":         {was: a, is: b, managers: busy(onA), detached: true},
		"volume has no instance yet":    {was: a, is: b, managers: idle, refused: true},
		"another volume runs":           {was: a, is: b, managers: append(slices.Clone(idle), manager("instance-manager-2", "", "pvc-other-e-0")), refused: true},
		"another volume has none yet":   {was: a, is: b, managers: elsewhere, starting: true, refused: true},
		"another component is on it":    {was: a, is: b, managers: []catalog.Component{{Kind: catalog.BackingImageManager, Built: idle[0].Built}}},
		"volume runs elsewhere":         {was: a, is: b, managers: elsewhere},
	} {
		t.Run(name, func(t *testing.T) {
			facts := SettingFacts{Applies: true}
			facts.Names, facts.Components = longhorn.DefaultNames(), test.managers
			facts.SystemValues = values{catalog.StorageNetwork: test.was}
			if !test.detached {
				facts.Rollout.Volumes = []rwx.Volume{webVolume}
			}
			if test.starting {
				facts.Rollout.Volumes = []rwx.Volume{{Name: "pvc-0", Attached: true}, webVolume}
			}
			v := ValidateSetting(settingOf(catalog.StorageNetwork, test.is), nil, facts)
			if refused := v.Reason == ReasonReplicasOnNetwork; refused != test.refused || refused != (len(v.Problems) > 0) {
				t.Fatalf("%s: %v", v.Reason, v.Problems)
			}
			must.True(t, !test.refused || strings.Contains(v.Problems[0].Detail, "in instance-manager-1 at once, before the value is applied. Attached: ") && strings.Contains(v.Problems[0].Detail, "pvc-117d3553 (node-2, pod default/web-0)"),
				"%v", v.Problems)
		})
	}
}

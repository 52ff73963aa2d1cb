package validators

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

var (
	storageNet = multus.Attachment{Network: multus.Network{Namespace: "kube-system", Name: "storage-net"}, Interface: "lhnet1"}
	backupNet  = multus.Attachment{Network: multus.Network{Namespace: "kube-system", Name: "backup-net"}, Interface: "lhnet2"}
)

type values = map[catalog.Name]string

// settingOf is a setting with a value.
func settingOf(name catalog.Name, value string) Setting {
	s := Setting{Value: &value}
	s.Metadata.Name = string(name)
	return s
}

func texts(problems field.ErrorList) (list []string) {
	for _, p := range problems {
		list = append(list, p.Error())
	}
	return list
}

func checkVerdict(t *testing.T, got Verdict, reason string, problems, warnings []string) {
	t.Helper()
	must.Equal(t, texts(got.Problems), problems, "problems")
	must.Equal(t, got.Warnings, warnings, "warnings")
	must.Equal(t, got.Reason, reason, "reason")
}

func TestSettingRulesDoNotChangeFacts(t *testing.T) {
	facts, before := endpointSet.facts(), endpointSet.facts()
	facts.Own, before.Own = true, true
	ValidateSetting(settingOf(catalog.EndpointNetworkForRWX, "kube-system/storage-net"), nil, facts)
	ValidateSettingDeletion(string(catalog.EndpointNetworkForRWX), facts)
	must.True(t, reflect.DeepEqual(facts, before), "got %+v", facts)
}

// An attached RWX volume never refuses a well-formed value. A refusal has no warnings.
func TestVolumesDelayAndNeverRefuse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "true", "false", "kube-system/storage-net", "kube-system/none"})).Draw(t, "value")
		s := settingOf(rapid.SampledFrom(catalog.All()).Draw(t, "setting").Name, value)
		facts := idle.facts()
		facts.SystemValues = values{catalog.StorageNetwork: "kube-system/storage-net"}
		facts.Own = rapid.Bool().Draw(t, "own")
		free := ValidateSetting(s, nil, facts)
		facts.Rollout.Volumes = []rwx.Volume{webVolume}
		held := ValidateSetting(s, nil, facts)
		must.True(t, reflect.DeepEqual(free.Problems, held.Problems), "%s %q: %v with a volume attached, else %v", s.Metadata.Name, value, held.Problems, free.Problems)
		must.True(t, len(free.Problems) == 0 || len(free.Warnings) == 0, "%s %q: refused with warnings %v", s.Metadata.Name, value, free.Warnings)
	})
}

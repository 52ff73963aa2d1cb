package describe

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

const reported = "as the controller says"

func ownSetting(value *string, effective, source string, applied bool) v1alpha1.Setting {
	status := metav1.ConditionFalse
	if applied {
		status = metav1.ConditionTrue
	}
	s := v1alpha1.Setting{Value: value}
	s.Name, s.Generation = string(catalog.StorageNetworkForRWX), 3
	s.Status = v1alpha1.SettingStatus{
		Applied: applied, EffectiveValue: effective, Source: source, ObservedGeneration: 3,
		Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionApplied, Status: status, Message: reported,
			LastTransitionTime: metav1.NewTime(time.Unix(1000, 0)),
		}},
	}
	return s
}

func TestStateOfASetting(t *testing.T) {
	yes, no := "true", "false"
	system := func(value string) []longhorn.Setting {
		s := longhorn.Setting{Value: value}
		s.Name = string(catalog.StorageNetworkForRWX)
		return []longhorn.Setting{s}
	}
	unseen := ownSetting(&yes, "true", "fairlead", true)
	unseen.Generation = 4
	cleared := ownSetting(nil, "true", "fairlead", true)
	cleared.Status.AppliedValue = &yes
	own := func(value *string, effective, source string, applied bool) []v1alpha1.Setting {
		return []v1alpha1.Setting{ownSetting(value, effective, source, applied)}
	}
	for name, test := range map[string]struct {
		own           []v1alpha1.Setting
		system        []longhorn.Setting
		value, source string
		applied       bool
		reason        string
	}{
		"no objects":                {nil, nil, "false", "default", true, reasonNotSet},
		"own, applied":              {own(&yes, "true", "fairlead", true), nil, "true", "fairlead", true, reported},
		"own, waiting":              {own(&yes, "true", "fairlead", false), nil, "true", "fairlead", false, reported},
		"own, just changed":         {own(&no, "true", "fairlead", true), nil, "false", "fairlead", false, reasonNotReported},
		"own, newer generation":     {[]v1alpha1.Setting{unseen}, nil, "true", "fairlead", false, reasonNotReported},
		"own, just cleared":         {[]v1alpha1.Setting{cleared}, nil, "false", "default", false, reasonNotReported},
		"Longhorn's, reported":      {own(nil, "true", "longhorn", true), system(yes), "true", "longhorn", true, reported},
		"Longhorn's, just changed":  {own(nil, "true", "longhorn", true), system(no), "false", "longhorn", false, reasonNotReported},
		"Longhorn's, no controller": {nil, system(yes), "true", "longhorn", false, reasonNotReported},
		"different values in both kinds": {own(&yes, "true", "fairlead", true), system(no), "false", "longhorn", false,
			`settings.fairlead.io storage-network-for-rwx-volume-enabled has value "true", but Longhorn has this setting itself: set it in settings.longhorn.io. Clear the value in settings.fairlead.io`},
	} {
		t.Run(name, func(t *testing.T) {
			states, unknown := States(test.own, test.system)
			must.True(t, len(unknown) == 0, "unknown: %q", unknown)
			for _, s := range states {
				if s.Name != catalog.StorageNetworkForRWX {
					continue
				}
				must.Check(t, s.Value.Text == test.value && string(s.Value.Source) == test.source && s.Applied == test.applied && s.Reason == test.reason, "got %+v", s)
				must.True(t, (s.Reason == reported) != s.Since.IsZero(), "since %s", s.Since)
			}
		})
	}
}

func TestEverySettingHasAState(t *testing.T) {
	states, _ := States(nil, nil)
	must.True(t, len(states) == len(catalog.All()), "got %d states of %d settings", len(states), len(catalog.All()))
	for _, s := range states {
		must.True(t, s.Applied && s.Reason != "" && s.Value.Text == s.Default, "%s: got %+v", s.Name, s)
	}
}

package cluster

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

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
			Type: v1alpha1.ConditionApplied, Status: status, Message: "as the controller says",
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
	takenBack := ownSetting(nil, "true", "fairlead", true)
	takenBack.Status.AppliedValue = &yes
	for _, test := range []struct {
		name          string
		own           []v1alpha1.Setting
		system        []longhorn.Setting
		value, source string
		applied       bool
		reason        string
	}{
		{"nothing is there", nil, nil, "false", "default", true, reasonNotSet},
		{"its own, applied", []v1alpha1.Setting{ownSetting(&yes, "true", "fairlead", true)}, nil, "true", "fairlead", true, "as the controller says"},
		{"its own, waiting", []v1alpha1.Setting{ownSetting(&yes, "true", "fairlead", false)}, nil, "true", "fairlead", false, "as the controller says"},
		{"its own, changed a moment ago", []v1alpha1.Setting{ownSetting(&no, "true", "fairlead", true)}, nil, "false", "fairlead", false, reasonNotReported},
		{"its own, of a newer generation", []v1alpha1.Setting{unseen}, nil, "true", "fairlead", false, reasonNotReported},
		{"the storage system's, seen", []v1alpha1.Setting{ownSetting(nil, "true", "longhorn", true)}, system(yes), "true", "longhorn", true, "as the controller says"},
		{"the storage system's, changed a moment ago", []v1alpha1.Setting{ownSetting(nil, "true", "longhorn", true)}, system(no), "false", "longhorn", false, reasonNotReported},
		{"the storage system's, no controller", nil, system(yes), "true", "longhorn", false, reasonNotReported},
		{"in both groups, and not the same", []v1alpha1.Setting{ownSetting(&yes, "true", "fairlead", true)}, system(no), "false", "longhorn", false,
			`settings.fairlead.io storage-network-for-rwx-volume-enabled has value "true", and longhorn has this setting itself: set it in settings.longhorn.io. Take the value in settings.fairlead.io away`},
		{"taken back a moment ago", []v1alpha1.Setting{takenBack}, nil, "false", "default", false, reasonNotReported},
	} {
		t.Run(test.name, func(t *testing.T) {
			states, unknown := settingStates("longhorn", test.own, test.system)
			if len(unknown) > 0 {
				t.Errorf("unknown: %q", unknown)
			}
			for _, s := range states {
				if s.Name != catalog.StorageNetworkForRWX {
					continue
				}
				if s.Value.Text != test.value || string(s.Value.Source) != test.source || s.Applied != test.applied || s.Reason != test.reason {
					t.Errorf("got %+v", s)
				}
				if known := s.Reason == "as the controller says"; known == s.Since.IsZero() {
					t.Errorf("since %s", s.Since)
				}
			}
		})
	}
}

func TestEverySettingHasAState(t *testing.T) {
	states, _ := settingStates("longhorn", nil, nil)
	if len(states) != len(catalog.All()) {
		t.Fatalf("got %d states of %d settings", len(states), len(catalog.All()))
	}
	for _, s := range states {
		if !s.Applied || s.Reason == "" || s.Value.Text != s.Default {
			t.Errorf("%s: got %+v", s.Name, s)
		}
	}
}

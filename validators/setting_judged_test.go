package validators

import (
	"testing"

	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestJudgedSettings(t *testing.T) {
	setting := func(name string, value *string) *Setting {
		s := &Setting{Value: value}
		s.Metadata.Name = name
		return s
	}
	const (
		network = "storage-network"
		cpu     = "guaranteed-instance-manager-cpu"
		outside = "auto-delete-pod-when-volume-detached-unexpectedly" // not in the danger zone
	)
	for name, test := range map[string]struct {
		s, old *Setting
		own    bool
		want   bool
	}{
		"created":                                  {setting(cpu, ptr.To("15")), nil, false, true},
		"created with the default":                 {setting(cpu, ptr.To("12")), nil, false, false},
		"created with a version's default":         {setting(cpu, ptr.To(`{"v1":"12","v2":"12"}`)), nil, false, false},
		"created with the default, Fairlead's own": {setting(cpu, ptr.To("12")), nil, true, true},
		"created without a value":                  {setting(cpu, nil), nil, false, true},
		"created without a value, Fairlead's own":  {setting(cpu, nil), nil, true, false},
		"created without a value, unknown":         {setting("typo", nil), nil, true, true},
		"created, unknown":                         {setting("typo", ptr.To("")), nil, true, true},
		"changed to the default":                   {setting(cpu, ptr.To("12")), setting(cpu, ptr.To("15")), false, true},
		"changed in spelling":                      {setting(cpu, ptr.To(" 12")), setting(cpu, ptr.To("12")), false, true},
		"set":                                      {setting(network, ptr.To("")), setting(network, nil), true, true},
		"cleared":                                  {setting(network, nil), setting(network, ptr.To("")), true, true},
		"unchanged":                                {setting(network, ptr.To("x")), setting(network, ptr.To("x")), false, false},
		"unset as before":                          {setting(network, nil), setting(network, nil), true, false},
		"deleted":                                  {nil, setting(network, ptr.To("x")), false, true},
		"outside the danger zone, changed":         {setting(outside, ptr.To("x")), setting(outside, ptr.To("true")), false, false},
		"outside the danger zone, deleted":         {nil, setting(outside, ptr.To("true")), false, false},
		"outside the danger zone, Fairlead's own":  {setting(outside, ptr.To("x")), nil, true, true},
		"unknown to Fairlead, of Longhorn":         {setting("backup-target", ptr.To("x")), nil, false, false},
		"snapshot clean-up, created":               {setting("auto-cleanup-system-generated-snapshot", ptr.To("")), nil, false, true},
		"snapshot clean-up, changed to true":       {setting("auto-cleanup-system-generated-snapshot", ptr.To("true")), setting("auto-cleanup-snapshot-when-delete-backup", ptr.To("false")), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			must.Equal(t, JudgesSetting(test.s, test.old, test.own), test.want)
		})
	}
}

package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestFormerFieldsAreRefusedWithTheirNewForm(t *testing.T) {
	for name, test := range map[string]struct{ was, is string }{
		"a profile": {"profiles:\n- name: longhorn\n", "longhorn: {}\n"},
		"a profile with duties beside networks": {
			"profiles:\n- {name: longhorn, namespace: storage, duties: {settings: guard}}\nnetworks: {gate: node}\n",
			"longhorn:\n  duties:\n    settings: guard\n  namespace: storage\n  networks:\n    gate: node\n",
		},
		"windows alone":          {"maintenanceWindows: [{start: \"22:00\", length: 4h}]\n", "longhorn:\n  maintenanceWindows:\n  - length: 4h\n    start: \"22:00\"\n"},
		"a share of workloads":   {"workloads: {maxPercent: 20}\n", "longhorn:\n  workloads:\n    maxPercent: 20\n"},
		"no profile, of fencing": {"profiles: []\nfencing: {profiles: [{name: rook-ceph}]}\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(head + test.was))
			must.True(t, errors.Is(err, errFormer) && strings.HasSuffix(err.Error(), test.is), "got %v", err)
			if test.is == "" {
				return
			}
			_, err = Parse([]byte(head + test.is))
			must.Do(t, err)
		})
	}
}

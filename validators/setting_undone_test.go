package validators

import (
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestWarnsOfValuesThatTheNextStartUndoes(t *testing.T) {
	const undone = `the next start of longhorn-manager sets storage-network to "kube-system/backup-net" again: ConfigMap longhorn-default-setting in namespace longhorn-system has this value. Change it there too (Helm: defaultSettings)`
	type defaults = map[string]string
	for name, c := range map[string]struct {
		setting catalog.Name
		value   string
		given   defaults
		own     bool
		want    bool
	}{
		"another value":                {catalog.StorageNetwork, "kube-system/storage-net", defaults{"storage-network": "kube-system/backup-net"}, false, true},
		"the same value":               {catalog.StorageNetwork, "kube-system/storage-net", defaults{"storage-network": "kube-system/storage-net"}, false, false},
		"no value":                     {catalog.StorageNetwork, "kube-system/storage-net", nil, false, false},
		"a value of another setting":   {catalog.StorageNetwork, "kube-system/storage-net", defaults{"priority-class": "high"}, false, false},
		"empty, for one that may be":   {catalog.StorageNetwork, "kube-system/storage-net", defaults{"storage-network": ""}, false, true},
		"the same, spelled otherwise":  {catalog.TaintToleration, "b=c:NoExecute;a=b:NoSchedule", defaults{"taint-toleration": "a=b:NoSchedule; b=c:NoExecute"}, false, false},
		"a malformed value is refused": {catalog.StorageNetwork, "storage-net", defaults{"storage-network": "kube-system/backup-net"}, false, false},
		"a class that does not exist":  {catalog.PriorityClass, "fast", defaults{"priority-class": "longhorn-critical"}, false, false},
		"another value, with default":  {catalog.GuaranteedCPU, "20", defaults{"guaranteed-instance-manager-cpu": "30"}, false, true},
		"empty, for one that can't be": {catalog.GuaranteedCPU, "20", defaults{"guaranteed-instance-manager-cpu": ""}, false, false},
		"Fairlead's own setting":       {catalog.EndpointNetworkForRWX, "kube-system/storage-net", defaults{"endpoint-network-for-rwx-volume": "kube-system/backup-net"}, true, false},
	} {
		facts := idle.facts()
		facts.Defaults, facts.Own = c.given, c.own
		s := Setting{Value: &c.value}
		s.Metadata.Name = string(c.setting)
		v := ValidateSetting(s, nil, facts)
		got := slices.ContainsFunc(v.Warnings, func(w string) bool { return strings.HasPrefix(w, "the next start of longhorn-manager") })
		must.Check(t, got == c.want, "%s: %q", name, v.Warnings)
		if name == "another value" {
			must.True(t, slices.Contains(v.Warnings, undone), "%q", v.Warnings)
		}
	}
}

package validators

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/storage"
)

func TestSettingInAnUnservedNamespaceIsRefused(t *testing.T) {
	longhorn, other := storage.Longhorn(), storage.Profile{Name: "rook-ceph", Namespace: "rook-ceph"}
	for name, test := range map[string]struct {
		namespace string
		profiles  []storage.Profile
		reason    string
		problems  []string
	}{
		"served": {"longhorn-system", []storage.Profile{other, longhorn}, ReasonValid, nil},
		"not served": {"default", []storage.Profile{longhorn}, ReasonNamespace, []string{
			`metadata.namespace: Invalid value: "default": Fairlead reads no settings from namespace "default", so the value would never take effect: set priority-class in namespace "longhorn-system" (longhorn)`,
		}},
		"not served, and several namespaces are": {"default", []storage.Profile{longhorn, other}, ReasonNamespace, []string{
			`metadata.namespace: Invalid value: "default": Fairlead reads no settings from namespace "default", so the value would never take effect: set priority-class in namespace "longhorn-system" (longhorn) or "rook-ceph" (rook-ceph)`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			checkVerdict(t, ValidateSettingNamespace("priority-class", test.namespace, test.profiles), test.reason, test.problems, nil)
		})
	}
}

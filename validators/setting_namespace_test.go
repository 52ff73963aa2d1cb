package validators

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/longhorn"
)

func TestSettingInUnservedNamespaceIsRefused(t *testing.T) {
	profiles := []longhorn.Names{{Name: "rook-ceph", Namespace: "rook-ceph"}, longhorn.DefaultNames()}
	checkVerdict(t, ValidateSettingNamespace("priority-class", "longhorn-system", profiles), ReasonValid, nil, nil)
	checkVerdict(t, ValidateSettingNamespace("priority-class", "default", profiles), ReasonNamespace, []string{
		`metadata.namespace: Invalid value: "default": Fairlead reads no settings from namespace "default", so the value would never take effect: set priority-class in namespace "rook-ceph" (rook-ceph) or "longhorn-system" (longhorn)`,
	}, nil)
}

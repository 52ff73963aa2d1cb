package validators

import "testing"

func TestSettingInUnservedNamespaceIsRefused(t *testing.T) {
	checkVerdict(t, ValidateSettingNamespace("priority-class", "longhorn-system", "longhorn-system"), ReasonValid, nil, nil)
	checkVerdict(t, ValidateSettingNamespace("priority-class", "default", "longhorn-system"), ReasonNamespace, []string{
		`metadata.namespace: Invalid value: "default": Fairlead reads no settings from namespace "default", so the value would never take effect: set priority-class in namespace "longhorn-system"`,
	}, nil)
}

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fairlead-io/fairlead/fence"
)

// Rules of automatic tainting as this configuration has them.
func (t Tainting) Rules() fence.Tainting {
	rules := fence.Tainting{
		Mode: fence.TaintingMode(t.Mode), NotReadyFor: t.NotReadyFor.Duration,
		MaxNodes: t.MaxNodes, MaxShare: t.MaxPercent,
	}
	if t.NodeSelector != "" {
		if selector, err := labels.Parse(t.NodeSelector); err == nil { // validated before
			rules.NodeSelector = selector
		}
	}
	return rules
}

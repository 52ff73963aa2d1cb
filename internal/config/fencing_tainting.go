package config

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/fence/profiles"
	"github.com/fairlead-io/fairlead/internal/fence/taint"
)

// Rules of automatic tainting.
func (t Tainting) Rules() taint.Rules {
	rules := taint.Rules{
		Mode: taint.Mode(t.Mode), NotReadyFor: t.NotReadyFor.Duration,
		MaxNodes: t.MaxNodes, MaxShare: t.MaxPercent,
		StormNodes: t.StormNodes, StormShare: t.StormPercent, StormWindow: t.StormWindow.Duration,
		MaxStaleness: t.MaxStaleness.Duration, ForceDetach: t.ForceDetach,
	}
	if t.NodeSelector != "" {
		if selector, err := labels.Parse(t.NodeSelector); err == nil { // validated before
			rules.NodeSelector = selector
		}
	}
	return rules
}

// validateGuards checks the storm limits and the drivers to force-detach.
func (t Tainting) validateGuards(path *field.Path) field.ErrorList {
	var problems field.ErrorList
	if t.StormNodes < 0 {
		problems = append(problems, field.Invalid(path.Child("stormNodes"), t.StormNodes, "must not be negative"))
	}
	if t.StormPercent < 0 || t.StormPercent > 100 {
		problems = append(problems, field.Invalid(path.Child("stormPercent"), t.StormPercent, "must be from 1 to 100"))
	}
	for i, driver := range t.ForceDetach {
		path := path.Child("forceDetach").Index(i)
		for _, message := range validation.IsQualifiedName(driver) {
			problems = append(problems, field.Invalid(path, driver, "must be the name of a CSI driver, or a plugin like kubernetes.io/iscsi: "+message))
		}
		if i := slices.IndexFunc(profiles.All(), func(s profiles.Profile) bool { return s.Serves(driver) }); i >= 0 {
			problems = append(problems, field.Invalid(path, driver, fmt.Sprintf("is a driver of %s, which lets two nodes write to one volume unless one is fenced", profiles.All()[i].Name)))
		}
	}
	return problems
}

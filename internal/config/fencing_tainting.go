package config

import (
	"fmt"
	"math"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

func (t Tainting) validate(p *problems, path *field.Path) {
	oneOf(p, path.Child("mode"), t.Mode, Off, DryRun, On)
	for _, d := range []struct {
		name  string
		value metav1.Duration
	}{{"notReadyFor", t.NotReadyFor}, {"stormWindow", t.StormWindow}, {"maxStaleness", t.MaxStaleness}} {
		p.atLeast(path.Child(d.name), d.value, 0)
	}
	p.number(path.Child("maxNodes"), t.MaxNodes, 0, math.MaxInt, "must not be negative")
	p.number(path.Child("stormNodes"), t.StormNodes, 0, math.MaxInt, "must not be negative")
	p.number(path.Child("maxPercent"), t.MaxPercent, 0, 100, "must be from 1 to 100") // 0 is the default
	p.number(path.Child("stormPercent"), t.StormPercent, 0, 100, "must be from 1 to 100")
	_, err := labels.Parse(t.NodeSelector)
	p.parsed(path.Child("nodeSelector"), t.NodeSelector, err)
	for i, driver := range t.ForceDetach {
		at := path.Child("forceDetach").Index(i)
		for _, message := range validation.IsQualifiedName(driver) {
			p.invalid(at, driver, "must be the name of a CSI driver, or a plugin like kubernetes.io/iscsi: "+message)
		}
		if i := slices.IndexFunc(profiles.All(), func(s profiles.Profile) bool { return s.Serves(driver) }); i >= 0 {
			p.invalid(at, driver, fmt.Sprintf("is a driver of %s, which lets two nodes write to one volume unless one is fenced", profiles.All()[i].Name))
		}
	}
}

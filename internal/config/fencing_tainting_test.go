package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/fairlead-io/fairlead/internal/fence/taint"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

const taintingHead = head + "fencing:\n  profiles: [{name: rook-ceph}]\n  tainting: "

func TestEveryRuleOfTaintingIsConfigured(t *testing.T) {
	c, err := Parse([]byte(taintingHead + `{mode: dryRun, notReadyFor: 1m, nodeSelector: a=b, maxNodes: 3, maxPercent: 50,
    stormNodes: 4, stormPercent: 30, stormWindow: 2m, maxStaleness: 30s, forceDetach: [ebs.csi.aws.com, kubernetes.io/gce-pd]}` + "\n"))
	must.Do(t, err)
	selector, err := labels.Parse("a=b")
	must.Do(t, err)
	want := taint.Rules{
		Mode: taint.DryRun, NotReadyFor: time.Minute, NodeSelector: selector, MaxNodes: 3, MaxShare: 50,
		StormNodes: 4, StormShare: 30, StormWindow: 2 * time.Minute, MaxStaleness: 30 * time.Second, ForceDetach: []string{"ebs.csi.aws.com", "kubernetes.io/gce-pd"},
	}
	got := c.Fencing.Tainting.Rules()
	must.Equal(t, got, want)
	for v, i := reflect.ValueOf(got), 0; i < v.NumField(); i++ {
		must.Check(t, !v.Field(i).IsZero(), "%s is not configured", v.Type().Field(i).Name)
	}
}

func TestDefaultsOfTaintingAreThoseOfItsRules(t *testing.T) {
	c, err := Parse([]byte(taintingHead + "{}\n"))
	must.Do(t, err)
	got, want := c.Fencing.Tainting.Rules(), taint.Rules{}.Defaulted()
	got.NodeSelector = want.NodeSelector
	must.True(t, reflect.DeepEqual(got, want), "got %+v, want %+v", got, want)
}

func TestGuardsOfTaintingAreChecked(t *testing.T) {
	for text, problem := range map[string]string{
		"stormNodes: -1":       `fencing.tainting.stormNodes: Invalid value: -1: must not be negative`,
		"stormPercent: 101":    `fencing.tainting.stormPercent: Invalid value: 101: must be from 1 to 100`,
		"stormPercent: -1":     `fencing.tainting.stormPercent: Invalid value: -1: must be from 1 to 100`,
		"stormWindow: -1s":     `fencing.tainting.stormWindow: Invalid value: "-1s": must not be negative`,
		"maxStaleness: -1s":    `fencing.tainting.maxStaleness: Invalid value: "-1s": must not be negative`,
		`forceDetach: ["*"]`:   `fencing.tainting.forceDetach[0]: Invalid value: "*": must be the name of a CSI driver`,
		`forceDetach: [a, ""]`: `fencing.tainting.forceDetach[1]: Invalid value: "": must be the name of a CSI driver`,
		// Off or not, what can be fenced is never let go without.
		"forceDetach: [rook-ceph.rbd.csi.ceph.com]": `fencing.tainting.forceDetach[0]: Invalid value: "rook-ceph.rbd.csi.ceph.com": is a driver of rook-ceph, which lets two nodes write to one volume unless one is fenced`,
	} {
		_, err := Parse([]byte(taintingHead + "{" + text + "}\n"))
		must.True(t, err != nil && strings.Contains(err.Error(), problem), "%s: got %v, want %s", text, err, problem)
	}
}

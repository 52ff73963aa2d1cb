package plan

import (
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/cli/clitest"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/settings"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/validators"
)

// judgedFacts adds the facts that only the webhook needs.
func judgedFacts(own, system map[catalog.Name]string) validators.SettingFacts {
	f := clusterFacts()
	f.OwnValues = own
	f.Values = catalog.Resolve(own, f.SystemValues)
	for name, value := range system {
		f = inLonghorn(f, name, value)
	}
	f.Classes = map[string]bool{"longhorn-critical": true, "system-node-critical": true}
	f.Rollout.Networks = map[multus.Network]bool{{Namespace: "kube-system", Name: "storage-net"}: true}
	return validators.SettingFacts{Facts: f, Applies: true, MissingPolicy: settings.Warn}
}

// Regression: the plan accepted changes that the webhook refuses.
func TestPlanRefusesWhatTheWebhookRefuses(t *testing.T) {
	critical := map[catalog.Name]string{catalog.PriorityClass: "longhorn-critical"}
	for _, test := range []struct {
		name       string
		system     map[catalog.Name]string
		set, unset []string
		refuse     bool
	}{
		{name: "missing-class", set: []string{"priority-class=missing"}, system: map[catalog.Name]string{catalog.PriorityClass: ""}},
		{name: "engine-in-use", set: []string{"v1-data-engine=false"}},
		{name: "several", set: []string{"v1-data-engine=false", "priority-class=missing", "guaranteed-instance-manager-cpu=20"}},
		{name: "contradicts", set: []string{"disable-snapshot-purge=true"}, system: map[catalog.Name]string{"auto-cleanup-system-generated-snapshot": "true"}},
		{name: "missing-network", set: []string{"storage-network=kube-system/other-net"}, refuse: true},
		{name: "malformed", set: []string{"storage-network=kube-system", "v2-data-engine=yes"}},
		{name: "not-deletable", unset: []string{"priority-class"}, system: critical},
		{name: "read-only", set: []string{"v2-data-engine-hugepage-limit=4096"}, system: map[catalog.Name]string{catalog.V2HugepageLimit: "2048"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			facts := judgedFacts(nil, test.system)
			if test.refuse {
				facts.MissingPolicy = settings.Refuse
			}
			_, err := changesFor(t, test.set, test.unset).planned(facts)
			must.True(t, err != nil, "the change is not refused")
			clitest.Golden(t, "plan-refused-"+test.name+".txt", err.Error()+"\n")
		})
	}
}

func TestPlanAcceptsWhatTheWebhookAccepts(t *testing.T) {
	empty := map[catalog.Name]string{catalog.PriorityClass: ""}
	probe := map[catalog.Name]string{catalog.EngineImageProbePeriod: "7"}
	gone := map[catalog.Name]string{catalog.PriorityClass: "gone"}
	for _, test := range []struct {
		name        string
		own, system map[catalog.Name]string
		set, unset  []string
		outcome     string
		then        string
		warns       string
	}{
		{"set", nil, empty, []string{"priority-class=longhorn-critical"}, nil, outcomeWaits, "longhorn-critical", ""},
		{"in another spelling", nil, map[catalog.Name]string{catalog.GuaranteedCPU: "12"}, []string{`guaranteed-instance-manager-cpu={"v1":"12","v2":"12"}`}, nil, outcomeNothing, `{"v1":"12","v2":"12"}`, ""},
		{"unchanged, so not judged", nil, gone, []string{"priority-class=gone"}, nil, outcomeWaits, "gone", ""},
		{"unset", probe, nil, nil, []string{"engine-image-pod-liveness-probe-period"}, outcomeNow, "5", ""},
		{"missing network", nil, map[catalog.Name]string{catalog.StorageNetwork: ""}, []string{"storage-network=kube-system/other-net"}, nil, outcomeNothing, "kube-system/other-net", "there is no NetworkAttachmentDefinition"},
	} {
		t.Run(test.name, func(t *testing.T) {
			facts := judgedFacts(test.own, test.system)
			view, err := changesFor(t, test.set, test.unset).planned(facts)
			must.Do(t, err)
			for _, s := range view.Settings {
				if !s.Changed {
					continue
				}
				if s.Then.Value != test.then || test.warns == "" && len(s.Warnings) > 0 || !strings.Contains(strings.Join(s.Warnings, ""), test.warns) {
					t.Errorf("%q, warnings %q", s.Then.Value, s.Warnings)
				}
			}
			must.Equal(t, view.Outcome, test.outcome)
			var out strings.Builder
			_ = show(&out, view, cli.OutputTable)
			must.Check(t, strings.Contains(out.String(), test.warns), "%q is not in\n%s", test.warns, out.String())
		})
	}
}

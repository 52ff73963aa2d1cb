package main

import (
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/settings"
	"github.com/fairlead-io/fairlead/storage"
	"github.com/fairlead-io/fairlead/validators"
)

// judgedThreeNodes are threeNodes with what the webhook knows beside.
func judgedThreeNodes(own, system map[settings.Name]string) validators.SettingFacts {
	f := threeNodes()
	f.OwnValues, f.SystemValues = own, system
	f.Values = settings.Resolve(own, system, f.Profile.Name)
	return validators.SettingFacts{
		Facts: f, Applies: true, MissingPolicy: validators.Warn, NetworksKnown: true,
		Networks: []storage.Network{{Namespace: "kube-system", Name: "storage-net"}}, PriorityClasses: []string{"longhorn-critical", "system-node-critical"},
	}
}

// Regression: what the webhook refuses was planned, with exit code 0 or 2.
func TestWhatTheWebhookRefusesIsRefused(t *testing.T) {
	critical := map[settings.Name]string{settings.PriorityClass: "longhorn-critical"}
	for _, test := range []struct {
		name       string
		own        map[settings.Name]string
		system     map[settings.Name]string
		set, unset []string
		group      string
		refuse     bool
	}{
		{name: "missing-class", set: []string{"priority-class=missing"}, group: ownGroup},
		{name: "engine-in-use", set: []string{"v1-data-engine=false"}, group: systemGroup},
		{name: "several", set: []string{"v1-data-engine=false", "priority-class=missing", "guaranteed-instance-manager-cpu=20"}, group: ownGroup},
		{name: "contradicts", set: []string{"disable-snapshot-purge=true"}, group: ownGroup, system: map[settings.Name]string{"auto-cleanup-system-generated-snapshot": "true"}},
		{name: "missing-network", set: []string{"storage-network=kube-system/other-net"}, group: ownGroup, refuse: true},
		{name: "not-deletable", unset: []string{"priority-class"}, group: systemGroup, system: critical},
		{name: "read-only", set: []string{"v2-data-engine-hugepage-limit=4096"}, group: systemGroup, system: map[settings.Name]string{settings.V2HugepageLimit: "2048"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			facts := judgedThreeNodes(test.own, test.system)
			if test.refuse {
				facts.MissingPolicy = validators.Refuse
			}
			_, err := requestFor(t, test.set, test.unset, test.group).planned(facts)
			if err == nil {
				t.Fatal("it is planned")
			}
			golden(t, "plan-refused-"+test.name+".txt", err.Error()+"\n")
		})
	}
}

func requestFor(t *testing.T, set, unset []string, group string) request {
	t.Helper()
	c, err := parseChanges(set, unset)
	if err != nil {
		t.Fatal(err)
	}
	return request{c, group}
}

func TestWhatTheWebhookAcceptsIsPlanned(t *testing.T) {
	other := map[settings.Name]string{settings.PriorityClass: "system-node-critical"}
	gone := map[settings.Name]string{settings.PriorityClass: "gone"}
	for _, test := range []struct {
		name        string
		own, system map[settings.Name]string
		set, unset  []string
		group       string
		outcome     string
		then        string
		warns       string
	}{
		{"the storage system's own", nil, nil, []string{"priority-class=longhorn-critical"}, nil, systemGroup, outcomeWaits, "longhorn-critical", ""},
		{"Fairlead's wins", other, nil, []string{"priority-class=longhorn-critical"}, nil, systemGroup, outcomeWaits, "system-node-critical", "longhorn goes by it"},
		{"as the webhook stores it", nil, nil, []string{"guaranteed-instance-manager-cpu= 12 "}, nil, ownGroup, outcomeNothing, "12", ""},
		{"as it is, which nobody judges", gone, nil, []string{"priority-class=gone"}, nil, ownGroup, outcomeWaits, "gone", ""},
		{"taken away", other, nil, nil, []string{"priority-class"}, ownGroup, outcomeNothing, "", "from now on"},
		{"a network that is missing", nil, nil, []string{"storage-network=kube-system/other-net"}, nil, ownGroup, outcomeNothing, "kube-system/other-net", "there is no NetworkAttachmentDefinition"},
	} {
		t.Run(test.name, func(t *testing.T) {
			facts := judgedThreeNodes(test.own, test.system)
			view, err := requestFor(t, test.set, test.unset, test.group).planned(facts)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range view.Settings {
				if !s.Changed {
					continue
				}
				if s.Then.Value != test.then || test.warns == "" && len(s.Warnings) > 0 || !strings.Contains(strings.Join(s.Warnings, ""), test.warns) {
					t.Errorf("%q, warnings %q", s.Then.Value, s.Warnings)
				}
			}
			if view.Outcome != test.outcome {
				t.Errorf("outcome %s", view.Outcome)
			}
			var out strings.Builder
			_ = show(&out, view, outputTable)
			if !strings.Contains(out.String(), test.warns) {
				t.Errorf("%q is not in\n%s", test.warns, out.String())
			}
		})
	}
}

// Regression: the same text in the other group kept the override, which the controller ends.
func TestAnOverrideIsForTheValueAndItsGroup(t *testing.T) {
	now := settings.Values{settings.PriorityClass: {Text: "a", Source: settings.SourceFairlead}}
	for _, then := range []settings.Value{{Text: "a", Source: settings.SourceFairlead}, {Text: "a", Source: "longhorn"}, {Text: "b", Source: settings.SourceFairlead}} {
		got := stillOverridden(map[settings.Name]bool{settings.PriorityClass: true}, now, settings.Values{settings.PriorityClass: then})
		if got[settings.PriorityClass] != (then == now[settings.PriorityClass]) {
			t.Errorf("%+v: %v", then, got)
		}
	}
}

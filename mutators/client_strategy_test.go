package mutators

import (
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// Longhorn 1.11 and later writes resources into the CSI plugin's template at
// once; Kubernetes would restart the pods under mounts that die with them.
func TestATemplateThatChangesUnderMountsIsNotRolledOutByKubernetes(t *testing.T) {
	onNetwork := rollout.Record{Clients: storage.Attachment{Network: storage.Network{Namespace: "kube-system", Name: "n"}, Interface: "lhnet1"}}
	template := func(strategy, cpu string) string {
		return `{"metadata":{"annotations":{"a":"b"}},"spec":{"updateStrategy":` + strategy + `,"template":{
			"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"[{\"namespace\": \"kube-system\", \"name\": \"n\", \"interface\": \"lhnet1\"}]"}},
			"spec":{"containers":[{"name":"x","resources":{"requests":{"cpu":"` + cpu + `"}}}]}}}}`
	}
	const rolling, onDeletion = `{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":2}}`, `{"type":"OnDelete"}`
	for name, test := range map[string]struct {
		is, was string
		record  rollout.Record
		want    Outcome
	}{
		"it changes":                  {template(rolling, "2"), template(rolling, "1"), onNetwork, Mutated},
		"it does not change":          {template(rolling, "1"), template(rolling, "1"), onNetwork, Unchanged},
		"it is paused already":        {template(onDeletion, "2"), template(onDeletion, "1"), onNetwork, Unchanged},
		"clients mount from the host": {template(rolling, "2"), template(rolling, "1"), rollout.Record{}, Unchanged},
		"clients mount in their own namespaces by a value that is not applied": {template(rolling, "2"), template(rolling, "1"), rollout.Record{MountsInClients: true}, Mutated},
		"it is created: there are no pods to be hurt":                          {template(rolling, "2"), "", onNetwork, Unchanged},
	} {
		t.Run(name, func(t *testing.T) {
			var old *ClientTemplate
			if test.was != "" {
				o := view[ClientTemplate](t, test.was)
				old = &o
			}
			got := MutateClientTemplate(view[ClientTemplate](t, test.is), old, inLonghorn, test.record)
			if got.Outcome != test.want {
				t.Fatalf("got %+v", got)
			}
			if test.want != Mutated {
				return
			}
			patch := string(encode(t, got.Patch))
			for _, want := range []string{
				`{"op":"add","path":"/metadata/annotations/fairlead.io~1update-strategy","value":"{\"type\":\"RollingUpdate\",\"rollingUpdate\":{\"maxUnavailable\":2}}"}`,
				`{"op":"add","path":"/spec/updateStrategy","value":{"type":"OnDelete"}}`,
			} {
				if !strings.Contains(patch, want) {
					t.Errorf("got  %s\nwant %s", patch, want)
				}
			}
		})
	}
}

func TestOnlyFairleadGivesTheStrategyBack(t *testing.T) {
	const kept = `"fairlead.io/update-strategy":"{\"type\":\"RollingUpdate\"}"`
	const rolling, onDeletion = `{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":2}}`, `{"type":"OnDelete"}`
	daemonSet := func(annotations, strategy, inTemplate string) string {
		return `{"metadata":{"annotations":{` + annotations + `}},"spec":{"updateStrategy":` + strategy + `,"template":{"metadata":{"annotations":{` + inTemplate + `}},"spec":{}}}}`
	}
	const optOut = `"fairlead.io/opt-out":"true"`
	for name, test := range map[string]struct {
		is, was string
		want    Outcome
	}{
		"given back while Fairlead restarts clients": {daemonSet(kept, rolling, ""), daemonSet(kept, onDeletion, ""), Mutated},
		"given back, and the annotation removed":     {daemonSet("", rolling, ""), daemonSet(kept, onDeletion, ""), Mutated},
		"the user chose OnDelete":                    {daemonSet("", rolling, ""), daemonSet("", onDeletion, ""), Unchanged},
		"not paused":                                 {daemonSet(kept, rolling, ""), daemonSet(kept, rolling, ""), Unchanged},
		"the template opts out":                      {daemonSet(kept, rolling, optOut), daemonSet(kept, onDeletion, optOut), Unchanged},
	} {
		t.Run(name, func(t *testing.T) {
			was := view[ClientTemplate](t, test.was)
			got := MutateClientTemplate(view[ClientTemplate](t, test.is), &was, inLonghorn, rollout.Record{})
			if got.Outcome != test.want {
				t.Fatalf("got %+v", got)
			}
			if test.want != Mutated {
				return
			}
			ruling{
				Mutated, ReasonPaused, "only Fairlead's controller gives the update strategy back",
				`[{"op":"add","path":"/metadata/annotations/fairlead.io~1update-strategy","value":"{\"type\":\"RollingUpdate\",\"rollingUpdate\":{\"maxUnavailable\":2}}"},` +
					`{"op":"add","path":"/spec/updateStrategy","value":{"type":"OnDelete"}}]`,
			}.check(t, got)
		})
	}
}

// Longhorn writes the network of a value that is not applied; the webhook takes it
// back, so nothing is left to roll out.
func TestTemplateIsNotPausedForNetworks(t *testing.T) {
	was := view[ClientTemplate](t, `{"spec":{"updateStrategy":{"type":"RollingUpdate"},"template":{"metadata":{"labels":{"a":"b"}},"spec":{}}}}`)
	is := view[ClientTemplate](t, `{"spec":{"updateStrategy":{"type":"RollingUpdate"},"template":{"metadata":{"labels":{"a":"b"},"annotations":{"k8s.v1.cni.cncf.io/networks":"`+networkText+`"}},"spec":{}}}}`)
	ruling{
		Mutated, ReasonNetworkRemoved, "only Fairlead's controller changes the networks of a template",
		`[{"op":"remove","path":"/spec/template/metadata/annotations/k8s.v1.cni.cncf.io~1networks"}]`,
	}.check(t, MutateClientTemplate(is, &was, inLonghorn, rollout.Record{MountsInClients: true}))
}

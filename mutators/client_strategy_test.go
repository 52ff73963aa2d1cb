package mutators

import (
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// Longhorn 1.11 and later changes resources in the template at once. Kubernetes would restart the pods under mounts, which
// die with the pods. Only Fairlead restores the update strategy.
func TestUpdateIsPausedUnderMounts(t *testing.T) {
	const (
		rolling    = `{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":2}}`
		onDeletion = `{"type":"OnDelete"}`
		kept       = `"fairlead.io/update-strategy":"{\"type\":\"RollingUpdate\"}"`
		optOut     = `{"metadata":{"annotations":{"fairlead.io/opt-out":"true"}},"spec":{}}`
		plain      = `{"metadata":{"annotations":{}},"spec":{}}`
	)
	daemonSet := func(annotations, strategy, template string) *ClientTemplate {
		return new(view[ClientTemplate](t, `{"metadata":{"annotations":{`+annotations+`}},"spec":{"updateStrategy":`+strategy+`,"template":`+template+`}}`))
	}
	needs := func(cpu string) string {
		return `{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"` + networkText + `"}},"spec":{"containers":[{"name":"x","resources":{"requests":{"cpu":"` + cpu + `"}}}]}}`
	}
	pauses := func(why string) ruling {
		return ruling{Mutated, ReasonPaused, why,
			`[{"op":"add","path":"/metadata/annotations/fairlead.io~1update-strategy","value":"{\"type\":\"RollingUpdate\",\"rollingUpdate\":{\"maxUnavailable\":2}}"},` +
				`{"op":"add","path":"/spec/updateStrategy","value":{"type":"OnDelete"}}]`}
	}
	changed, restored := pauses("the template changed under mounts"), pauses("only Fairlead's controller restores the update strategy")
	upToDate := ruling{Unchanged, ReasonUpToDate, "requests kube-system/storage-net@lhnet1", ""}
	noNetwork := ruling{Unchanged, ReasonNoNetwork, "only Fairlead's controller changes the networks of a template", ""}
	onNetwork := rollout.Record{Clients: storageNet}
	for name, test := range map[string]struct {
		is, was *ClientTemplate
		record  rollout.Record
		want    ruling
	}{
		"changed":                     {daemonSet("", rolling, needs("2")), daemonSet("", rolling, needs("1")), onNetwork, changed},
		"unchanged":                   {daemonSet("", rolling, needs("1")), daemonSet("", rolling, needs("1")), onNetwork, upToDate},
		"paused already":              {daemonSet("", onDeletion, needs("2")), daemonSet("", onDeletion, needs("1")), onNetwork, upToDate},
		"clients mount from the host": {daemonSet("", rolling, needs("2")), daemonSet("", rolling, needs("1")), rollout.Record{}, upToDate},
		"clients mount in the pods":   {daemonSet("", rolling, needs("2")), daemonSet("", rolling, needs("1")), rollout.Record{MountsInClients: true}, changed},
		"created: no pods yet":        {daemonSet("", rolling, needs("2")), nil, onNetwork, upToDate},

		"restored while Fairlead restarts clients": {daemonSet(kept, rolling, plain), daemonSet(kept, onDeletion, plain), rollout.Record{}, restored},
		"restored, annotation removed":             {daemonSet("", rolling, `{}`), daemonSet(kept, onDeletion, `{}`), rollout.Record{}, restored},
		"the user chose OnDelete":                  {daemonSet("", rolling, plain), daemonSet("", onDeletion, plain), rollout.Record{}, noNetwork},
		"not paused":                               {daemonSet(kept, rolling, plain), daemonSet(kept, rolling, plain), rollout.Record{}, noNetwork},
		"the template opts out":                    {daemonSet(kept, rolling, optOut), daemonSet(kept, onDeletion, optOut), rollout.Record{}, noNetwork},
	} {
		test.want.check(t, name, MutateClientTemplate(*test.is, test.was, inLonghorn, test.record))
	}
	was := daemonSet("", rolling, needs("1"))
	both := changed
	both.reason, both.detail = ReasonNetworkAdded, "kube-system/storage-net@lhnet1: only Fairlead's controller changes the networks of a template; "+changed.detail
	both.patch = strings.TrimSuffix(addTemplateNetworks, "]") + "," + changed.patch[1:]
	both.check(t, "networks removed, and changed", MutateClientTemplate(*daemonSet("", rolling, plain), was, inLonghorn, onNetwork))
	onHost := daemonSet("", rolling, `{"spec":{"hostNetwork":true}}`)
	changed.check(t, "moved to the host network", MutateClientTemplate(*onHost, was, inLonghorn, onNetwork),
		"on the host network: Multus adds no interface to pods on the host network; set hostNetwork to false to join kube-system/storage-net@lhnet1")
}

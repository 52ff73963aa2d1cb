package mutators

import (
	"cmp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

const (
	networkText            = `[{\"namespace\": \"kube-system\", \"name\": \"storage-net\", \"interface\": \"lhnet1\"}]`
	newAnnotations         = `[{"op":"add","path":"/metadata/annotations","value":{"k8s.v1.cni.cncf.io/networks":"` + networkText + `"}}]`
	addTemplateNetworks    = `[{"op":"add","path":` + templateNetworks + `,"value":"` + networkText + `"}]`
	newTemplateAnnotations = `[{"op":"add","path":"/spec/template/metadata/annotations","value":{"k8s.v1.cni.cncf.io/networks":"` + networkText + `"}}]`
	templateNetworks       = `"/spec/template/metadata/annotations/k8s.v1.cni.cncf.io~1networks"`
	addAnnotation          = `[{"op":"add","path":"/metadata/annotations/k8s.v1.cni.cncf.io~1networks","value":"`
)

var (
	teamText = `{\"namespace\": \"team-x\", \"name\": \"nfs\", \"interface\": \"` + teamNet.Interface + `\"`
	// onBoth has clients and servers on the default network and on a per-volume network.
	onBoth = rollout.Record{Clients: storageNet, Servers: storageNet, VolumeClients: []multus.Attachment{teamNet}, VolumeServers: []multus.Attachment{teamNet}}
)

// networks is an object with the networks annotation.
func networks(value string) string {
	return `{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"` + value + `"}}}`
}

// TestClientPod has the cases of every rule that gives pods a network.
func TestClientPod(t *testing.T) {
	const (
		recorded = "recorded for clients"
		added    = "kube-system/storage-net@lhnet1: recorded for clients"
		removal  = `[{"op":"remove","path":"/metadata/annotations/k8s.v1.cni.cncf.io~1networks"}]`
		addition = addAnnotation + networkText + `"}]`
		others   = `[{\"name\":\"x\",\"ips\":[\"10.0.0.1\"]}`
	)
	onHost := "Multus adds no interface to pods on the host network; set hostNetwork to false to join kube-system/storage-net@lhnet1"
	unreadable := "annotation k8s.v1.cni.cncf.io/networks: not a network selection that Multus understands: unexpected end of JSON input"
	for name, test := range map[string]struct {
		pod     string
		clients multus.Attachment
		want    ruling
	}{
		"no annotations":          {`{"metadata":{"name":"csi-1"},"spec":{}}`, storageNet, ruling{Mutated, ReasonNetworkAdded, added, newAnnotations}},
		"annotations null":        {`{"metadata":{"annotations":null}}`, storageNet, ruling{Mutated, ReasonNetworkAdded, added, newAnnotations}},
		"annotations empty":       {`{"metadata":{"annotations":{}}}`, storageNet, ruling{Mutated, ReasonNetworkAdded, added, addition}},
		"other networks, JSON":    {networks(others + "]"), storageNet, ruling{Mutated, ReasonNetworkAdded, added, addAnnotation + others + ", " + networkText[1:] + `"}]`}},
		"other networks, short":   {networks("x@net1"), storageNet, ruling{Mutated, ReasonNetworkAdded, added, addAnnotation + `x@net1,kube-system/storage-net@lhnet1"}]`}},
		"requested already":       {networks("kube-system/storage-net@lhnet1"), storageNet, ruling{Unchanged, ReasonUpToDate, "requests kube-system/storage-net@lhnet1", ""}},
		"no network recorded":     {`{"metadata":{}}`, multus.Attachment{}, ruling{Unchanged, ReasonNoNetwork, recorded, ""}},
		"opted out":               {optedOut("true"), storageNet, ruling{Skipped, ReasonOptOut, "annotation fairlead.io/opt-out keeps network kube-system/storage-net@lhnet1 off", ""}},
		"opt-out false":           {optedOut("false"), storageNet, ruling{Mutated, ReasonNetworkAdded, added, addition}},
		"host network":            {`{"spec":{"hostNetwork":true}}`, storageNet, ruling{Skipped, ReasonHostNetwork, onHost, ""}},
		"interface name taken":    {networks("x@lhnet1"), storageNet, ruling{Mutated, ReasonNetworkReplaced, added, addition}},
		"value not applied":       {networks("y@net1,kube-system/backup-net@lhnet2"), storageNet, ruling{Mutated, ReasonNetworkReplaced, added, addAnnotation + `y@net1,kube-system/storage-net@lhnet1"}]`}},
		"first value not applied": {networks(networkText), multus.Attachment{}, ruling{Mutated, ReasonNetworkRemoved, recorded, removal}},
		"only other networks":     {networks("y@net1"), multus.Attachment{}, ruling{Unchanged, ReasonNoNetwork, recorded, ""}},
		"unreadable":              {networks("[{"), storageNet, ruling{Skipped, ReasonUnreadable, unreadable, ""}},
		"opted out, no network":   {`{"metadata":{"annotations":{"fairlead.io/opt-out":"true","k8s.v1.cni.cncf.io/networks":"y@net1"}}}`, multus.Attachment{}, ruling{Unchanged, ReasonNoNetwork, recorded, ""}},
		"host, no network":        {`{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"y@net1"}},"spec":{"hostNetwork":true}}`, multus.Attachment{}, ruling{Unchanged, ReasonNoNetwork, recorded, ""}},
		"unreadable, no network":  {networks("[{"), multus.Attachment{}, ruling{Unchanged, ReasonNoNetwork, recorded, ""}},
	} {
		test.want.check(t, name, MutateClientPod(view[ClientPod](t, test.pod), inLonghorn, rollout.Record{Clients: test.clients}))
	}
}

func optedOut(value string) string {
	return `{"metadata":{"annotations":{"fairlead.io/opt-out":"` + value + `"}}}`
}

func TestClientTemplate(t *testing.T) {
	const added = "kube-system/storage-net@lhnet1: recorded for clients"
	const ofDaemonSet = `"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"without meaning on a DaemonSet"}},`
	for name, test := range map[string]struct {
		metadata, template string
		want               ruling
	}{
		"no annotations": {ofDaemonSet, `{"metadata":{"labels":{"a":"b"}}}`, ruling{Mutated, ReasonNetworkAdded, added, newTemplateAnnotations}},
		"annotations":    {"", `{"metadata":{"annotations":{"a":"b"}}}`, ruling{Mutated, ReasonNetworkAdded, added, addTemplateNetworks}},
		"host network":   {"", `{"spec":{"hostNetwork":true}}`, ruling{Skipped, ReasonHostNetwork, "Multus adds no interface to pods on the host network; set hostNetwork to false to join kube-system/storage-net@lhnet1", ""}},
		"opted out":      {"", optedOut("true"), ruling{Skipped, ReasonOptOut, "annotation fairlead.io/opt-out keeps network kube-system/storage-net@lhnet1 off", ""}},
	} {
		ds := view[ClientTemplate](t, `{`+test.metadata+`"spec":{"template":`+test.template+`}}`)
		test.want.check(t, name, MutateClientTemplate(ds, nil, inLonghorn, rollout.Record{Clients: storageNet}))
	}
}

func TestServerPod(t *testing.T) {
	const recorded, byService = ": recorded by Service pvc-a", "kube-system/storage-net@lhnet1: recorded by Service pvc-a"
	const noService = "recorded for servers; the volume has no Service yet"
	fixed := &rwx.Service{Name: "pvc-a", ClusterIP: "None", Recorded: teamNet, Identity: multus.Identity{Addresses: "10.0.0.9/24,fd00::9", MAC: "02:00:00:00:00:01"}}
	text := teamText + `, \"ips\": [\"10.0.0.9/24\", \"fd00::9\"], \"mac\": \"02:00:00:00:00:01\"}]`
	inLongForm := addAnnotation + `[{\"namespace\": \"longhorn-system\", \"name\": \"x\", \"interface\": \"net1\"}, ` + text + `"}]`
	otherAddresses := "network " + teamNet.String() + " asks for other addresses there: 10.0.0.8; remove these addresses so that the volume keeps its own"
	for name, test := range map[string]struct {
		service *rwx.Service
		record  rollout.Record
		want    ruling
		pod     string
	}{
		"fixed addresses":                {service: fixed, want: ruling{Mutated, ReasonNetworkAdded, teamNet.String() + recorded, strings.Replace(newAnnotations, networkText, "["+text, 1)}},
		"fixed, beside a short form":     {pod: networks("x@net1"), service: fixed, want: ruling{Mutated, ReasonNetworkAdded, teamNet.String() + recorded, inLongForm}},
		"fixed, other addresses":         {pod: networks("[" + teamText + `,\"ips\":[\"10.0.0.8\"]}]`), service: fixed, want: ruling{Skipped, ReasonOtherAddresses, otherAddresses, ""}},
		"Service has a network":          {service: &rwx.Service{Name: "pvc-a", ClusterIP: "None", Recorded: storageNet}, record: rollout.Record{}, want: ruling{Mutated, ReasonNetworkAdded, byService, newAnnotations}},
		"Service follows the clients":    {service: &rwx.Service{Name: "pvc-a", ClusterIP: "None"}, record: rollout.Record{Clients: storageNet}, want: ruling{Mutated, ReasonNetworkAdded, byService, newAnnotations}},
		"Service opts out":               {service: &rwx.Service{Name: "pvc-a", ClusterIP: "None", OptOut: true}, record: rollout.Record{}, want: ruling{Unchanged, ReasonOptOut, "annotation fairlead.io/opt-out of Service pvc-a", ""}},
		"Service has a cluster IP":       {service: &rwx.Service{Name: "pvc-a", ClusterIP: "10.0.0.1"}, record: rollout.Record{Clients: storageNet, Servers: storageNet}, want: ruling{Unchanged, ReasonNoNetwork, "Service pvc-a is for the cluster network", ""}},
		"Service has one, no record":     {service: &rwx.Service{Name: "pvc-a", ClusterIP: "None", Recorded: storageNet}, record: rollout.Record{Unknown: true}, want: ruling{Mutated, ReasonNetworkAdded, byService, newAnnotations}},
		"Service has none, no record":    {service: &rwx.Service{Name: "pvc-a", ClusterIP: "None"}, record: rollout.Record{Unknown: true}, want: ruling{Unchanged, ReasonNotRecorded, "", ""}},
		"no Service":                     {service: nil, record: rollout.Record{Clients: backupNet, Servers: storageNet}, want: ruling{Mutated, ReasonNetworkAdded, "kube-system/storage-net@lhnet1: " + noService, newAnnotations}},
		"no Service, only clients on it": {service: nil, record: rollout.Record{Clients: storageNet}, want: ruling{Unchanged, ReasonNoNetwork, noService, ""}},
	} {
		test.want.check(t, name, MutateServerPod(view[ServerPod](t, cmp.Or(test.pod, "{}")), inLonghorn, test.service, test.record))
	}
}

func TestClientPodJoinsPerVolumeNetworks(t *testing.T) {
	team, all := teamNet.String(), strings.TrimSuffix(networkText, "]")+", "+teamText+"}]"
	both := ruling{Mutated, ReasonNetworkAdded, storageNet.String() + ", " + team + ": recorded for clients", strings.Replace(newAnnotations, networkText, all, 1)}
	both.check(t, "both networks", MutateClientPod(view[ClientPod](t, `{}`), inLonghorn, onBoth))
	// A clash of one network keeps no other off.
	one := ruling{Mutated, ReasonNetworkAdded, storageNet.String() + ": recorded for clients", addAnnotation + `x@` + teamNet.Interface + `,` + storageNet.String() + `"}]`}
	one.check(t, "a clash", MutateClientPod(view[ClientPod](t, networks("x@"+teamNet.Interface)), inLonghorn, onBoth),
		"interface name taken: interface "+teamNet.Interface+" is already asked for by network longhorn-system/x; rename the interface of that network so that "+team+" can be added")
}

func TestServerPodViewHasLabelsAndAnnotations(t *testing.T) {
	pod := view[ServerPod](t, `{"metadata":{"labels":{"longhorn.io/share-manager":"pvc-a"},"annotations":{"fairlead.io/opt-out":"true"}}}`)
	must.True(t, pod.Metadata.Labels["longhorn.io/share-manager"] == "pvc-a" && pod.Metadata.Annotations != nil && pod.Metadata.Annotations.OptOut == "true",
		"got %+v", pod)
}

func TestPodPatchesAreMinimalAndIdempotent(t *testing.T) {
	annotation := []string{"metadata", "annotations", multus.NetworksAnnotation}
	rapid.Check(t, func(t *rapid.T) {
		network := rapid.SampledFrom([]multus.Attachment{{}, storageNet, backupNet}).Draw(t, "network")
		pod := genPod(t)
		checkMinimal(t, pod, func(p ClientPod) Result {
			return MutateClientPod(p, inLonghorn, rollout.Record{Clients: network})
		}, annotation)
		checkMinimal(t, pod, func(p ServerPod) Result {
			return MutateServerPod(p, inLonghorn, nil, rollout.Record{Servers: network})
		}, annotation)
		checkMinimal(t, pod, func(p ServerPod) Result {
			return MutateServerPod(p, inLonghorn, &rwx.Service{ClusterIP: "None", Recorded: teamNet, Identity: multus.Identity{Addresses: "10.0.0.9"}}, rollout.Record{})
		}, annotation)
		checkMinimal(t, pod, func(p ClientPod) Result {
			return MutateClientPod(p, inLonghorn, rollout.Record{VolumeClients: []multus.Attachment{teamNet}})
		}, annotation)
		daemonSet := map[string]any{"metadata": map[string]any{"name": "csi"}, "spec": map[string]any{"paused": true, "template": pod}}
		checkMinimal(t, daemonSet, func(ds ClientTemplate) Result {
			return MutateClientTemplate(ds, nil, inLonghorn, rollout.Record{Clients: network})
		}, append([]string{"spec", "template"}, annotation...))
	})
}

func genPod(t *rapid.T) map[string]any {
	pod := map[string]any{
		"metadata": map[string]any{"name": "p", "labels": map[string]any{"app": "longhorn-csi-plugin"}},
		"spec":     map[string]any{"hostNetwork": rapid.IntRange(0, 4).Draw(t, "host") == 0, "containers": []any{map[string]any{"name": rapid.String().Draw(t, "container")}}},
	}
	if annotations := genAnnotations(t, multus.NetworksAnnotation, "", "[]", "x", "x@lhnet1,y", `[{"name":"x","future":"é"}]`, "kube-system/storage-net@lhnet1", "X", "["); annotations != nil {
		pod["metadata"].(map[string]any)["annotations"] = annotations
	}
	return pod
}

// genAnnotations draws annotations: none, null, or some of others, an opt-out and one of the values given.
func genAnnotations(t *rapid.T, key string, values ...string) any {
	if rapid.IntRange(0, 3).Draw(t, "annotations") == 0 {
		return nil
	}
	annotations := map[string]any{}
	for k, v := range rapid.MapOfN(rapid.StringMatching(`[a-z]{1,5}\.io/[a-z~]{1,5}`), rapid.String(), 0, 2).Draw(t, "of others") {
		annotations[k] = v
	}
	if rapid.Bool().Draw(t, "has "+key) {
		annotations[key] = rapid.SampledFrom(values).Draw(t, key)
	}
	if rapid.IntRange(0, 5).Draw(t, "opt-out") == 0 {
		annotations[rwx.OptOutAnnotation] = rapid.SampledFrom([]string{"true", "false", ""}).Draw(t, "opts out")
	}
	return annotations
}

// Longhorn writes a setting's network into the template before the value is applied (longhorn-manager v1.7.2, updateCNI).
// Kubernetes would restart every client, also under attached volumes. The webhook takes the network back, so nothing is
// left to roll out, and the update is not paused.
func TestClientTemplateUpdateKeepsItsNetworks(t *testing.T) {
	template := func(networks string) ClientTemplate {
		if networks != "" {
			networks = `,"annotations":{"k8s.v1.cni.cncf.io/networks":"` + networks + `"}`
		}
		return view[ClientTemplate](t, `{"spec":{"updateStrategy":{"type":"RollingUpdate"},"template":{"metadata":{"labels":{"a":"b"}`+networks+`}}}}`)
	}
	const why = "only Fairlead's controller changes the networks of a template"
	on, other, team := storageNet.String(), backupNet.String(), teamNet.String()
	for name, test := range map[string]struct {
		was, is string
		clients multus.Attachment
		want    ruling
	}{
		"added before it is applied": {"", on, multus.Attachment{}, ruling{Mutated, ReasonNetworkRemoved, why, `[{"op":"remove","path":` + templateNetworks + `}]`}},
		"added after it is recorded": {"", on, storageNet, ruling{Mutated, ReasonNetworkRemoved, why, `[{"op":"remove","path":` + templateNetworks + `}]`}},
		"removed":                    {on, "", storageNet, ruling{Mutated, ReasonNetworkAdded, on + ": " + why, newTemplateAnnotations}},
		"replaced":                   {on, other, storageNet, ruling{Mutated, ReasonNetworkReplaced, on + ": " + why, addTemplateNetworks}},
		"unchanged":                  {on, on, multus.Attachment{}, ruling{Unchanged, ReasonUpToDate, "requests " + on, ""}},
		"other network removed":      {"y@net1," + on, on, storageNet, ruling{Unchanged, ReasonUpToDate, "requests " + on, ""}},
		"per-volume network removed": {on + "," + team, on, storageNet, ruling{Mutated, ReasonNetworkAdded, team + ": " + why, `[{"op":"add","path":` + templateNetworks + `,"value":"` + on + "," + team + `"}]`}},
		"stored one is unreadable":   {"[{", on, storageNet, ruling{Unchanged, ReasonUnreadable, "the networks of the stored template could not be read", ""}},
		"other network added":        {"", "y@net1", storageNet, ruling{Unchanged, ReasonNoNetwork, why, ""}},
	} {
		was := template(test.was)
		test.want.check(t, name, MutateClientTemplate(template(test.is), &was, inLonghorn, rollout.Record{Clients: test.clients, MountsInClients: true}))
	}
}

// Longhorn may use a network before the controller has initialised the record.
func TestNothingIsChangedWithoutARecord(t *testing.T) {
	unknown := rollout.Record{Unknown: true}
	pod := `{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"x@lhnet1"}}}`
	headless := `{"metadata":{"labels":{"a":"b"}},"spec":{"clusterIP":"None"}}`
	for name, got := range map[string]Result{
		"client pod": MutateClientPod(view[ClientPod](t, pod), inLonghorn, unknown),
		"server pod": MutateServerPod(view[ServerPod](t, pod), inLonghorn, nil, unknown),
		"template":   MutateClientTemplate(view[ClientTemplate](t, `{"spec":{"template":`+pod+`}}`), nil, inLonghorn, unknown),
		"Service":    MutateService(longhorn.DefaultNames(), view[Service](t, headless), nil, unknown, rwx.Request{}),
	} {
		ruling{Unchanged, ReasonNotRecorded, "", ""}.check(t, name, got)
	}
}

package mutators

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

const (
	networkText    = `[{\"namespace\": \"kube-system\", \"name\": \"storage-net\", \"interface\": \"lhnet1\"}]`
	newAnnotations = `[{"op":"add","path":"/metadata/annotations","value":{"k8s.v1.cni.cncf.io/networks":"` + networkText + `"}}]`
	addAnnotation  = `[{"op":"add","path":"/metadata/annotations/k8s.v1.cni.cncf.io~1networks","value":"`
)

// What holds for every rule that gives pods a network.
func TestClientPod(t *testing.T) {
	for name, test := range map[string]struct {
		pod     string
		clients storage.Attachment
		want    ruling
	}{
		"no annotations": {
			`{"metadata":{"name":"csi-1"},"spec":{}}`, storageNet,
			ruling{Mutated, ReasonNetworkAdded, "kube-system/storage-net@lhnet1: the record of clients says so", newAnnotations},
		},
		"annotations null": {
			`{"metadata":{"annotations":null}}`, storageNet,
			ruling{Mutated, ReasonNetworkAdded, "kube-system/storage-net@lhnet1: the record of clients says so", newAnnotations},
		},
		"annotations empty": {
			`{"metadata":{"annotations":{}}}`, storageNet,
			ruling{Mutated, ReasonNetworkAdded, "kube-system/storage-net@lhnet1: the record of clients says so", addAnnotation + networkText + `"}]`},
		},
		"annotations of others": {
			`{"metadata":{"annotations":{"a":"b"}}}`, storageNet,
			ruling{Mutated, ReasonNetworkAdded, "kube-system/storage-net@lhnet1: the record of clients says so", addAnnotation + networkText + `"}]`},
		},
		"networks of others, JSON": {
			`{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"[{\"name\":\"x\",\"ips\":[\"10.0.0.1\"]}]"}}}`, storageNet,
			ruling{
				Mutated, ReasonNetworkAdded, "kube-system/storage-net@lhnet1: the record of clients says so",
				addAnnotation + `[{\"name\":\"x\",\"ips\":[\"10.0.0.1\"]}, {\"namespace\": \"kube-system\", \"name\": \"storage-net\", \"interface\": \"lhnet1\"}]"}]`,
			},
		},
		"networks of others, short": {
			`{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"x@net1"}}}`, storageNet,
			ruling{Mutated, ReasonNetworkAdded, "kube-system/storage-net@lhnet1: the record of clients says so", addAnnotation + `x@net1,kube-system/storage-net@lhnet1"}]`},
		},
		"asks for it already": {
			`{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"kube-system/storage-net@lhnet1"}}}`, storageNet,
			ruling{Unchanged, ReasonAsItShouldBe, "asks for kube-system/storage-net@lhnet1", ""},
		},
		"no network recorded": {
			`{"metadata":{}}`, storage.Attachment{},
			ruling{Unchanged, ReasonNoNetwork, "the record of clients says so", ""},
		},
		"opted out": {
			`{"metadata":{"annotations":{"fairlead.io/opt-out":"true"}}}`, storageNet,
			ruling{Skipped, ReasonOptOut, "annotation fairlead.io/opt-out keeps network kube-system/storage-net@lhnet1 off", ""},
		},
		"opt-out says no": {
			`{"metadata":{"annotations":{"fairlead.io/opt-out":"false"}}}`, storageNet,
			ruling{Mutated, ReasonNetworkAdded, "kube-system/storage-net@lhnet1: the record of clients says so", addAnnotation + networkText + `"}]`},
		},
		"on the host network": {
			`{"metadata":{},"spec":{"hostNetwork":true}}`, storageNet,
			ruling{Skipped, ReasonHostNetwork, "Multus adds no interface to pods on the host network; set hostNetwork to false to join kube-system/storage-net@lhnet1", ""},
		},
		"interface name taken": {
			`{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"x@lhnet1"}}}`, storageNet,
			ruling{Mutated, ReasonNetworkReplaced, "kube-system/storage-net@lhnet1: the record of clients says so", addAnnotation + networkText + `"}]`},
		},
		"built on the newer interface by a value that is not applied": {
			`{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"y@net1,kube-system/backup-net@lhnet2"}}}`, storageNet,
			ruling{Mutated, ReasonNetworkReplaced, "kube-system/storage-net@lhnet1: the record of clients says so", addAnnotation + `y@net1,kube-system/storage-net@lhnet1"}]`},
		},
		"built by a value that is not applied, clients on the cluster network": {
			`{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"` + networkText + `"}}}`, storage.Attachment{},
			ruling{Mutated, ReasonNetworkRemoved, "the record of clients says so", `[{"op":"remove","path":"/metadata/annotations/k8s.v1.cni.cncf.io~1networks"}]`},
		},
		"networks of others only, clients on the cluster network": {
			`{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"y@net1"}}}`, storage.Attachment{},
			ruling{Unchanged, ReasonNoNetwork, "the record of clients says so", ""},
		},
		"unreadable": {
			`{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"[{"}}}`, storageNet,
			ruling{Skipped, ReasonUnreadable, "annotation k8s.v1.cni.cncf.io/networks: not a network selection that Multus understands: unexpected end of JSON input", ""},
		},
		"nothing to add to what is unreadable": {
			`{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"[{"}}}`, storage.Attachment{},
			ruling{Unchanged, ReasonNoNetwork, "the record of clients says so", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.want.check(t, MutateClientPod(view[ClientPod](t, test.pod), inLonghorn, rollout.Record{Clients: test.clients}))
		})
	}
}

func TestClientTemplate(t *testing.T) {
	const templates = "/spec/template/metadata/annotations"
	for name, test := range map[string]struct {
		daemonSet string
		want      ruling
	}{
		"no annotations on the template": {
			`{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"on the DaemonSet itself it means nothing"}},"spec":{"template":{"metadata":{"labels":{"app":"longhorn-csi-plugin"}}}}}`,
			ruling{
				Mutated, ReasonNetworkAdded, "kube-system/storage-net@lhnet1: the record of clients says so",
				`[{"op":"add","path":"` + templates + `","value":{"k8s.v1.cni.cncf.io/networks":"` + networkText + `"}}]`,
			},
		},
		"annotations on the template": {
			`{"spec":{"template":{"metadata":{"annotations":{"a":"b"}}}}}`,
			ruling{
				Mutated, ReasonNetworkAdded, "kube-system/storage-net@lhnet1: the record of clients says so",
				`[{"op":"add","path":"` + templates + `/k8s.v1.cni.cncf.io~1networks","value":"` + networkText + `"}]`,
			},
		},
		"as it is": {
			`{"spec":{"template":{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"` + networkText + `"}}}}}`,
			ruling{Unchanged, ReasonAsItShouldBe, "asks for kube-system/storage-net@lhnet1", ""},
		},
		"template on the host network": {
			`{"spec":{"template":{"metadata":{},"spec":{"hostNetwork":true}}}}`,
			ruling{Skipped, ReasonHostNetwork, "Multus adds no interface to pods on the host network; set hostNetwork to false to join kube-system/storage-net@lhnet1", ""},
		},
		"template opts out": {
			`{"spec":{"template":{"metadata":{"annotations":{"fairlead.io/opt-out":"true"}}}}}`,
			ruling{Skipped, ReasonOptOut, "annotation fairlead.io/opt-out keeps network kube-system/storage-net@lhnet1 off", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.want.check(t, MutateClientTemplate(view[ClientTemplate](t, test.daemonSet), nil, inLonghorn, rollout.Record{Clients: storageNet}))
		})
	}
}

func TestServerPod(t *testing.T) {
	for name, test := range map[string]struct {
		service *storage.Service
		record  rollout.Record
		want    ruling
	}{
		"its Service has the network recorded, whatever the record says by now": {
			&storage.Service{Name: "pvc-a", ClusterIP: "None", Recorded: storageNet}, rollout.Record{},
			ruling{Mutated, ReasonNetworkAdded, "kube-system/storage-net@lhnet1: Service pvc-a has it recorded", newAnnotations},
		},
		"its Service opts out": {
			&storage.Service{Name: "pvc-a", ClusterIP: "None", OptOut: true}, rollout.Record{},
			ruling{Unchanged, ReasonOptOut, "annotation fairlead.io/opt-out of Service pvc-a", ""},
		},
		"its Service has a cluster IP, whatever the record says by now": {
			&storage.Service{Name: "pvc-a", ClusterIP: "10.0.0.1"}, rollout.Record{Clients: storageNet, Servers: storageNet},
			ruling{Unchanged, ReasonNoNetwork, "Service pvc-a is for the cluster network", ""},
		},
		"a headless Service without a record follows the clients": {
			&storage.Service{Name: "pvc-a", ClusterIP: "None"}, rollout.Record{Clients: storageNet},
			ruling{Mutated, ReasonNetworkAdded, "kube-system/storage-net@lhnet1: Service pvc-a has it recorded", newAnnotations},
		},
		"no Service: what servers are on": {
			nil, rollout.Record{Clients: backupNet, Servers: storageNet},
			ruling{Mutated, ReasonNetworkAdded, "kube-system/storage-net@lhnet1: the record of servers says so, and the volume has no Service yet", newAnnotations},
		},
		"no Service, only clients on the network": {
			nil, rollout.Record{Clients: storageNet},
			ruling{Unchanged, ReasonNoNetwork, "the record of servers says so, and the volume has no Service yet", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := view[ServerPod](t, `{"metadata":{"labels":{"longhorn.io/share-manager":"pvc-a"}},"spec":{}}`)
			test.want.check(t, MutateServerPod(pod, inLonghorn, test.service, test.record))
		})
	}
}

func TestServerPodViewHasLabelsAndAnnotations(t *testing.T) {
	pod := view[ServerPod](t, `{"metadata":{"labels":{"longhorn.io/share-manager":"pvc-a"},"annotations":{"fairlead.io/opt-out":"true"}}}`)
	if pod.Metadata.Labels["longhorn.io/share-manager"] != "pvc-a" || pod.Metadata.Annotations == nil || pod.Metadata.Annotations.OptOut != "true" {
		t.Fatalf("got %+v", pod)
	}
}

func TestPodPatchesAreMinimalAndIdempotent(t *testing.T) {
	annotation := []string{"metadata", "annotations", storage.NetworksAnnotation}
	rapid.Check(t, func(t *rapid.T) {
		network := rapid.SampledFrom([]storage.Attachment{{}, storageNet, backupNet}).Draw(t, "network")
		pod := genPod(t)
		checkMinimal(t, pod, func(p ClientPod) Result {
			return MutateClientPod(p, inLonghorn, rollout.Record{Clients: network})
		}, annotation)
		checkMinimal(t, pod, func(p ServerPod) Result {
			return MutateServerPod(p, inLonghorn, nil, rollout.Record{Servers: network})
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
	if annotations := genAnnotations(t, storage.NetworksAnnotation, "", "[]", "x", "x@lhnet1,y", `[{"name":"x","future":"é"}]`, "kube-system/storage-net@lhnet1", "X", "["); annotations != nil {
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
		annotations[storage.OptOutAnnotation] = rapid.SampledFrom([]string{"true", "false", ""}).Draw(t, "opts out")
	}
	return annotations
}

// Longhorn writes the network of a setting's value into the template, applied or
// not, and takes it off again: updateCNI of longhorn-manager v1.7.2. Kubernetes
// would restart every client for that, attached volumes or not.
func TestClientTemplateUpdateKeepsItsNetworks(t *testing.T) {
	template := func(networks string) ClientTemplate {
		return view[ClientTemplate](t, `{"spec":{"updateStrategy":{"type":"OnDelete"},"template":{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"`+networks+`"}}}}}`)
	}
	const path = `"/spec/template/metadata/annotations/k8s.v1.cni.cncf.io~1networks"`
	const why = "only Fairlead's controller changes the networks of a template"
	on, other := storageNet.String(), backupNet.String()
	for name, test := range map[string]struct {
		was, is string
		clients storage.Attachment
		want    ruling
	}{
		"added before it is applied": {"", on, storage.Attachment{}, ruling{Mutated, ReasonNetworkRemoved, why, `[{"op":"remove","path":` + path + `}]`}},
		"added after it is recorded": {"", on, storageNet, ruling{Mutated, ReasonNetworkRemoved, why, `[{"op":"remove","path":` + path + `}]`}},
		"taken off":                  {on, "", storageNet, ruling{Mutated, ReasonNetworkAdded, on + ": " + why, addAt(path)}},
		"replaced":                   {on, other, storageNet, ruling{Mutated, ReasonNetworkReplaced, on + ": " + why, addAt(path)}},
		"left as it is":              {on, on, storage.Attachment{}, ruling{Unchanged, ReasonAsItShouldBe, "asks for " + on, ""}},
		"another's network added":    {"", "y@net1", storageNet, ruling{Unchanged, ReasonNoNetwork, why, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			was := template(test.was)
			test.want.check(t, MutateClientTemplate(template(test.is), &was, inLonghorn, rollout.Record{Clients: test.clients}))
		})
	}
}

func addAt(path string) string {
	return `[{"op":"add","path":` + path + `,"value":"` + networkText + `"}]`
}

// Before the controller has begun a record, Longhorn may be on a network already.
func TestNothingIsChangedWithoutARecord(t *testing.T) {
	unknown := rollout.Record{Unknown: true}
	pod := `{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"x@lhnet1"}}}`
	headless := `{"metadata":{"labels":{"a":"b"}},"spec":{"clusterIP":"None"}}`
	for name, got := range map[string]Result{
		"client pod": MutateClientPod(view[ClientPod](t, pod), inLonghorn, unknown),
		"server pod": MutateServerPod(view[ServerPod](t, pod), inLonghorn, nil, unknown),
		"template":   MutateClientTemplate(view[ClientTemplate](t, `{"spec":{"template":`+pod+`}}`), nil, inLonghorn, unknown),
		"Service":    MutateService(view[Service](t, headless), nil, unknown, storage.Request{}),
	} {
		t.Run(name, func(t *testing.T) { ruling{Unchanged, ReasonNotRecorded, "", ""}.check(t, got) })
	}
}

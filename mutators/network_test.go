package mutators

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/settings"
	"github.com/fairlead-io/fairlead/storage"
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
			ruling{Mutated, ReasonNetworkAdded, "kube-system/storage-net@lhnet1: clients are on it", newAnnotations},
		},
		"annotations null": {
			`{"metadata":{"annotations":null}}`, storageNet,
			ruling{Mutated, ReasonNetworkAdded, "kube-system/storage-net@lhnet1: clients are on it", newAnnotations},
		},
		"annotations empty": {
			`{"metadata":{"annotations":{}}}`, storageNet,
			ruling{Mutated, ReasonNetworkAdded, "kube-system/storage-net@lhnet1: clients are on it", addAnnotation + networkText + `"}]`},
		},
		"annotations of others": {
			`{"metadata":{"annotations":{"a":"b"}}}`, storageNet,
			ruling{Mutated, ReasonNetworkAdded, "kube-system/storage-net@lhnet1: clients are on it", addAnnotation + networkText + `"}]`},
		},
		"networks of others, JSON": {
			`{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"[{\"name\":\"x\",\"ips\":[\"10.0.0.1\"]}]"}}}`, storageNet,
			ruling{
				Mutated, ReasonNetworkAdded, "kube-system/storage-net@lhnet1: clients are on it",
				addAnnotation + `[{\"name\":\"x\",\"ips\":[\"10.0.0.1\"]}, {\"namespace\": \"kube-system\", \"name\": \"storage-net\", \"interface\": \"lhnet1\"}]"}]`,
			},
		},
		"networks of others, short": {
			`{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"x@net1"}}}`, storageNet,
			ruling{Mutated, ReasonNetworkAdded, "kube-system/storage-net@lhnet1: clients are on it", addAnnotation + `x@net1,kube-system/storage-net@lhnet1"}]`},
		},
		"asks for it already": {
			`{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"kube-system/storage-net@lhnet1"}}}`, storageNet,
			ruling{Unchanged, ReasonAsItShouldBe, "asks for kube-system/storage-net@lhnet1", ""},
		},
		"no network recorded": {
			`{"metadata":{}}`, storage.Attachment{},
			ruling{Unchanged, ReasonNoNetwork, "clients are on it", ""},
		},
		"opted out": {
			`{"metadata":{"annotations":{"fairlead.io/opt-out":"true"}}}`, storageNet,
			ruling{Skipped, ReasonOptOut, "annotation fairlead.io/opt-out keeps network kube-system/storage-net@lhnet1 off", ""},
		},
		"opt-out says no": {
			`{"metadata":{"annotations":{"fairlead.io/opt-out":"false"}}}`, storageNet,
			ruling{Mutated, ReasonNetworkAdded, "kube-system/storage-net@lhnet1: clients are on it", addAnnotation + networkText + `"}]`},
		},
		"on the host network": {
			`{"metadata":{},"spec":{"hostNetwork":true}}`, storageNet,
			ruling{Skipped, ReasonHostNetwork, "Multus adds no interface to pods on the host network; set hostNetwork to false to join kube-system/storage-net@lhnet1", ""},
		},
		"interface name taken": {
			`{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"x@lhnet1"}}}`, storageNet,
			ruling{Skipped, ReasonClash, "interface lhnet1 is already asked for by network longhorn-system/x; give it another interface name so that kube-system/storage-net@lhnet1 can have it", ""},
		},
		"unreadable": {
			`{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"[{"}}}`, storageNet,
			ruling{Skipped, ReasonUnreadable, "annotation k8s.v1.cni.cncf.io/networks: not a network selection that Multus understands: unexpected end of JSON input", ""},
		},
		"nothing to add to what is unreadable": {
			`{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"[{"}}}`, storage.Attachment{},
			ruling{Unchanged, ReasonNoNetwork, "clients are on it", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.want.check(t, MutateClientPod(view[ClientPod](t, test.pod), "longhorn-system", settings.Record{Clients: test.clients}))
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
				Mutated, ReasonNetworkAdded, "kube-system/storage-net@lhnet1: clients are on it",
				`[{"op":"add","path":"` + templates + `","value":{"k8s.v1.cni.cncf.io/networks":"` + networkText + `"}}]`,
			},
		},
		"annotations on the template": {
			`{"spec":{"template":{"metadata":{"annotations":{"a":"b"}}}}}`,
			ruling{
				Mutated, ReasonNetworkAdded, "kube-system/storage-net@lhnet1: clients are on it",
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
			test.want.check(t, MutateClientTemplate(view[ClientTemplate](t, test.daemonSet), nil, "longhorn-system", settings.Record{Clients: storageNet}, false))
		})
	}
}

func TestServerPod(t *testing.T) {
	for name, test := range map[string]struct {
		service *storage.Service
		record  settings.Record
		want    ruling
	}{
		"its Service has the network recorded, whatever the record says by now": {
			&storage.Service{Name: "pvc-a", ClusterIP: "None", Recorded: storageNet}, settings.Record{},
			ruling{Mutated, ReasonNetworkAdded, "kube-system/storage-net@lhnet1: Service pvc-a has it recorded", newAnnotations},
		},
		"its Service has a cluster IP, whatever the record says by now": {
			&storage.Service{Name: "pvc-a", ClusterIP: "10.0.0.1"}, settings.Record{Clients: storageNet, Servers: storageNet},
			ruling{Unchanged, ReasonNoNetwork, "Service pvc-a has a cluster IP", ""},
		},
		"a headless Service without a record follows the clients": {
			&storage.Service{Name: "pvc-a", ClusterIP: "None"}, settings.Record{Clients: storageNet},
			ruling{Mutated, ReasonNetworkAdded, "kube-system/storage-net@lhnet1: Service pvc-a has it recorded", newAnnotations},
		},
		"no Service: what servers are on": {
			nil, settings.Record{Clients: backupNet, Servers: storageNet},
			ruling{Mutated, ReasonNetworkAdded, "kube-system/storage-net@lhnet1: servers are on it, and the volume has no Service yet", newAnnotations},
		},
		"no Service, only clients on the network": {
			nil, settings.Record{Clients: storageNet},
			ruling{Unchanged, ReasonNoNetwork, "servers are on it, and the volume has no Service yet", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := view[ServerPod](t, `{"metadata":{"labels":{"longhorn.io/share-manager":"pvc-a"}},"spec":{}}`)
			test.want.check(t, MutateServerPod(pod, "longhorn-system", test.service, test.record))
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
			return MutateClientPod(p, "longhorn-system", settings.Record{Clients: network})
		}, annotation)
		checkMinimal(t, pod, func(p ServerPod) Result {
			return MutateServerPod(p, "longhorn-system", nil, settings.Record{Servers: network})
		}, annotation)
		daemonSet := map[string]any{"metadata": map[string]any{"name": "csi"}, "spec": map[string]any{"paused": true, "template": pod}}
		checkMinimal(t, daemonSet, func(ds ClientTemplate) Result {
			return MutateClientTemplate(ds, nil, "longhorn-system", settings.Record{Clients: network}, false)
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

func TestClientTemplateUpdateOnlyKeepsTheNetwork(t *testing.T) {
	without := view[ClientTemplate](t, `{"spec":{"template":{"metadata":{}}}}`)
	on := view[ClientTemplate](t, `{"spec":{"template":{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"kube-system/storage-net@lhnet1"}}}}}`)
	// Adding it here would have Kubernetes restart every client, attached volumes or not.
	if got := MutateClientTemplate(without, &without, "longhorn-system", settings.Record{Clients: storageNet}, false); got.Outcome != Unchanged || got.Reason != ReasonNotRolledOut {
		t.Errorf("a template that was not on the network: %+v", got)
	}
	if got := MutateClientTemplate(without, &on, "longhorn-system", settings.Record{Clients: storageNet}, false); got.Outcome != Mutated {
		t.Errorf("a template that was on the network: %+v", got)
	}
}

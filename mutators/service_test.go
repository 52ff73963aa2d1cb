package mutators

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

func TestService(t *testing.T) {
	const (
		record   = `{"op":"add","path":"/metadata/annotations/fairlead.io~1network","value":"kube-system/storage-net@lhnet1"}`
		headless = `{"op":"add","path":"/spec/clusterIP","value":"None"}`
		onIt     = "kube-system/storage-net@lhnet1: servers are on it"
	)
	for name, test := range map[string]struct {
		service string
		running *storage.Server
		servers storage.Attachment
		request storage.Request
		want    ruling
	}{
		"Longhorn's own": {
			service: `{"metadata":{"name":"pvc-a","labels":{"longhorn.io/share-manager":"pvc-a"}},"spec":{"type":"ClusterIP","selector":{"longhorn.io/share-manager":"pvc-a"},"ports":[{"name":"nfs","port":2049}]}}`,
			servers: storageNet,
			want: ruling{Mutated, ReasonHeadless, onIt, `[{"op":"add","path":"/metadata/annotations","value":{"fairlead.io/network":"kube-system/storage-net@lhnet1","fairlead.io/selector":"{\"longhorn.io/share-manager\":\"pvc-a\"}"}},` +
				headless + `,{"op":"remove","path":"/spec/selector"}]`},
		},
		"with annotations": {
			service: `{"metadata":{"annotations":{"a":"b"}},"spec":{"selector":{"a":"b"}}}`,
			servers: storageNet,
			want: ruling{Mutated, ReasonHeadless, onIt, `[` + record + `,{"op":"add","path":"/metadata/annotations/fairlead.io~1selector","value":"{\"a\":\"b\"}"},` +
				headless + `,{"op":"remove","path":"/spec/selector"}]`},
		},
		"without a selector": {
			service: `{"metadata":{"annotations":{}},"spec":{}}`, servers: storageNet,
			want: ruling{Mutated, ReasonHeadless, onIt, `[` + record + `,` + headless + `]`},
		},
		"headless by Longhorn, not recorded": {
			service: `{"metadata":{"annotations":{}},"spec":{"clusterIP":"None","clusterIPs":["None"]}}`, servers: storageNet,
			want: ruling{Mutated, ReasonRecorded, onIt, `[` + record + `]`},
		},
		"recorded for another network": {
			service: `{"metadata":{"annotations":{"fairlead.io/network":"kube-system/backup-net@lhnet2"}},"spec":{"clusterIP":"None"}}`, servers: storageNet,
			want: ruling{Mutated, ReasonRecorded, onIt, `[` + record + `]`},
		},
		"as it should be": {
			service: `{"metadata":{"annotations":{"fairlead.io/network":"kube-system/storage-net@lhnet1","fairlead.io/selector":"{\"a\":\"b\"}"}},"spec":{"clusterIP":"None","clusterIPs":["None"]}}`, servers: storageNet,
			want: ruling{Unchanged, ReasonAsItShouldBe, "headless, for kube-system/storage-net@lhnet1", ""},
		},
		"addresses without an address": {
			service: `{"metadata":{"annotations":{}},"spec":{"clusterIPs":["10.0.0.9"]}}`, servers: storageNet,
			want: ruling{Mutated, ReasonHeadless, onIt, `[` + record + `,` + headless + `,{"op":"remove","path":"/spec/clusterIPs"}]`},
		},
		"its server runs on a network already": {
			service: `{"metadata":{"annotations":{}},"spec":{}}`, running: &storage.Server{Pod: "share-manager-pvc-a", Network: storageNet},
			want: ruling{Mutated, ReasonHeadless, "kube-system/storage-net@lhnet1: server pod share-manager-pvc-a runs on it", `[` + record + `,` + headless + `]`},
		},
		"its server runs on both networks": {
			service: `{"metadata":{"annotations":{}},"spec":{}}`, servers: storageNet,
			running: &storage.Server{Pod: "share-manager-pvc-a", Network: backupNet, Networks: []storage.Attachment{backupNet, storageNet}},
			want:    ruling{Mutated, ReasonHeadless, "kube-system/storage-net@lhnet1: server pod share-manager-pvc-a runs on it", `[` + record + `,` + headless + `]`},
		},
		"its server runs on the cluster network": {
			service: `{"spec":{}}`, running: &storage.Server{Pod: "share-manager-pvc-a"}, servers: storageNet,
			want: ruling{Unchanged, ReasonNoNetwork, "", ""},
		},
		"headless by a value that is not applied": {
			service: `{"metadata":{"name":"pvc-a","labels":{"longhorn.io/managed-by":"longhorn-manager","longhorn.io/share-manager":"pvc-a"}},"spec":{"type":"ClusterIP","clusterIP":"None","clusterIPs":["None"]}}`,
			want: ruling{Mutated, ReasonClusterIP, "new servers are on the cluster network",
				`[{"op":"remove","path":"/spec/clusterIP"},{"op":"remove","path":"/spec/clusterIPs"},{"op":"add","path":"/spec/selector","value":{"longhorn.io/managed-by":"longhorn-manager","longhorn.io/share-manager":"pvc-a"}}]`},
		},
		"headless by a value that is not applied, recorded": {
			service: `{"metadata":{"labels":{"a":"b"},"annotations":{"fairlead.io/network":"kube-system/storage-net@lhnet1"}},"spec":{"clusterIP":"None"}}`,
			want: ruling{Mutated, ReasonClusterIP, "new servers are on the cluster network",
				`[{"op":"remove","path":"/metadata/annotations/fairlead.io~1network"},{"op":"remove","path":"/spec/clusterIP"},{"op":"add","path":"/spec/selector","value":{"a":"b"}}]`},
		},
		"headless with a selector of its own": {
			service: `{"metadata":{"labels":{"a":"b"}},"spec":{"clusterIP":"None","selector":{"c":"d"}}}`,
			want:    ruling{Unchanged, ReasonNoNetwork, "", ""},
		},
		"headless by a value that is not applied, opted out": {
			service: `{"metadata":{"labels":{"a":"b"},"annotations":{"fairlead.io/opt-out":"true"}},"spec":{"clusterIP":"None"}}`,
			want:    ruling{Skipped, ReasonOptOut, "annotation fairlead.io/opt-out keeps the Service headless, though no network is applied", ""},
		},
		"no network": {service: `{"spec":{"type":"NodePort"}}`, want: ruling{Unchanged, ReasonNoNetwork, "", ""}},
		"opted out": {
			service: `{"metadata":{"annotations":{"fairlead.io/opt-out":"true"}},"spec":{}}`, servers: storageNet,
			want: ruling{Skipped, ReasonOptOut, "annotation fairlead.io/opt-out keeps the volume off network kube-system/storage-net@lhnet1", ""},
		},
		"fixed addresses on the network of all": {
			service: `{"metadata":{"annotations":{}},"spec":{"clusterIP":"None"}}`, servers: storageNet,
			request: storage.Request{Identity: storage.Identity{Addresses: "10.0.0.9/24", MAC: "02:00:00:00:00:01"}},
			want: ruling{Mutated, ReasonRecorded, onIt, `[` + record + `,{"op":"add","path":"/metadata/annotations/fairlead.io~1addresses","value":"10.0.0.9/24"},` +
				`{"op":"add","path":"/metadata/annotations/fairlead.io~1mac","value":"02:00:00:00:00:01"}]`},
		},
		"addresses that are no longer fixed": {
			service: `{"metadata":{"annotations":{"fairlead.io/network":"kube-system/storage-net@lhnet1","fairlead.io/addresses":"10.0.0.9/24"}},"spec":{"clusterIP":"None"}}`, servers: storageNet,
			want: ruling{Mutated, ReasonRecorded, onIt, `[{"op":"remove","path":"/metadata/annotations/fairlead.io~1addresses"}]`},
		},
		"not a ClusterIP Service": {
			service: `{"spec":{"type":"LoadBalancer"}}`, servers: storageNet,
			want: ruling{Skipped, ReasonNotClusterIP, "a Service of type LoadBalancer can't be headless; the volume stays off network kube-system/storage-net@lhnet1", ""},
		},
		"fixed cluster IP": {
			service: `{"spec":{"clusterIP":"10.0.0.9"}}`, servers: storageNet,
			want: ruling{Skipped, ReasonFixedAddress, "cluster IP 10.0.0.9 was asked for; the volume stays off network kube-system/storage-net@lhnet1", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.want.check(t, MutateService(view[Service](t, test.service), test.running, rollout.Record{Servers: test.servers}, test.request))
		})
	}
}

func TestServicePatchesAreMinimalAndIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := map[string]any{"ports": []any{map[string]any{"port": 2049.0}}, "future": rapid.String().Draw(t, "future")}
		some := func(key string, values ...any) {
			if rapid.Bool().Draw(t, "has "+key) {
				spec[key] = rapid.SampledFrom(values).Draw(t, key)
			}
		}
		some("type", "", "ClusterIP", "NodePort")
		some("clusterIP", "", "None", "10.0.0.9")
		some("selector", nil, map[string]any{}, map[string]any{"b": "1", "a/~": "é\"<"})
		if spec["clusterIP"] == nil || spec["clusterIP"] == "" {
			some("clusterIPs", nil, []any{}, []any{"10.0.0.9"})
		}
		metadata := map[string]any{"name": "pvc-a"}
		if annotations := genAnnotations(t, storage.NetworkAnnotation, "", "x", storageNet.String(), backupNet.String()); annotations != nil {
			metadata["annotations"] = annotations
		}
		network := rapid.SampledFrom([]storage.Attachment{{}, storageNet, backupNet}).Draw(t, "network")
		identity := rapid.SampledFrom([]storage.Identity{{}, {Addresses: "10.0.0.9/24"}, {MAC: "02:00:00:00:00:01"}}).Draw(t, "fixed")
		checkMinimal(t, map[string]any{"metadata": metadata, "spec": spec}, func(s Service) Result {
			return MutateService(s, nil, rollout.Record{Servers: network}, storage.Request{Identity: identity})
		},
			[]string{"metadata", "annotations", storage.NetworkAnnotation}, []string{"metadata", "annotations", storage.SelectorAnnotation},
			[]string{"metadata", "annotations", storage.AddressesAnnotation}, []string{"metadata", "annotations", storage.MACAnnotation},
			[]string{"spec", "clusterIP"}, []string{"spec", "clusterIPs"}, []string{"spec", "selector"})
	})
}

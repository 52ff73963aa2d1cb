package mutators

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

func TestService(t *testing.T) {
	const (
		record   = `{"op":"add","path":"/metadata/annotations/fairlead.io~1network","value":"kube-system/storage-net@lhnet1"}`
		headless = `{"op":"add","path":"/spec/clusterIP","value":"None"}`
		network  = "network kube-system/storage-net@lhnet1"
		empty    = `{"metadata":{"annotations":{}},"spec":{}}`
		requests = "StorageClass fast requests network team-x/nfs, which not every CSI plugin pod has joined; the volume stays on "
		joined   = " until all have joined and the volume is detached"
		pod      = "share-manager-pvc-a"

		newServers = "kube-system/storage-net@lhnet1: new servers use the network"
		noServers  = "new servers are on the cluster network"
		runs       = "kube-system/storage-net@lhnet1: server pod share-manager-pvc-a runs on the network"
	)
	onStorageNet := rollout.Record{Servers: storageNet}
	notYet := rollout.Record{Clients: storageNet, Servers: storageNet, VolumeClients: []multus.Attachment{teamNet}}
	byClass := rwx.Request{Network: teamNet.Network, Source: "StorageClass fast"}
	patched := func(reason, why string, operations ...string) ruling {
		return ruling{Mutated, reason, why, "[" + strings.Join(operations, ",") + "]"}
	}
	annotated := func(annotations string) string {
		return `{"metadata":{"annotations":{` + annotations + `}},"spec":{"clusterIP":"None"}}`
	}
	skip := func(reason, detail string) ruling { return ruling{Skipped, reason, detail, ""} }
	ofLonghorn := `{"metadata":{"annotations":null},"spec":{"type":"ClusterIP","selector":{"longhorn.io/share-manager":"pvc-a"},"ports":[{"name":"nfs","port":2049}]}}`
	for name, test := range map[string]struct {
		service  string
		record   rollout.Record
		running  *rwx.Server
		request  rwx.Request
		want     ruling
		warnings []string
	}{
		"Longhorn's own": {service: ofLonghorn, record: onStorageNet,
			want: patched(ReasonHeadless, newServers, `{"op":"add","path":"/metadata/annotations","value":{"fairlead.io/network":"kube-system/storage-net@lhnet1","fairlead.io/selector":"{\"longhorn.io/share-manager\":\"pvc-a\"}"}}`, headless, `{"op":"remove","path":"/spec/selector"}`)},
		"with annotations": {service: `{"metadata":{"annotations":{"a":"b"}},"spec":{"selector":{"a":"b"}}}`, record: onStorageNet,
			want: patched(ReasonHeadless, newServers, record, `{"op":"add","path":"/metadata/annotations/fairlead.io~1selector","value":"{\"a\":\"b\"}"}`, headless, `{"op":"remove","path":"/spec/selector"}`)},
		"headless, not recorded":       {service: `{"metadata":{"annotations":{}},"spec":{"clusterIP":"None","clusterIPs":["None"]}}`, record: onStorageNet, want: patched(ReasonRecorded, newServers, record)},
		"recorded for another network": {service: annotated(`"fairlead.io/network":"kube-system/backup-net@lhnet2"`), record: onStorageNet, want: patched(ReasonRecorded, newServers, record)},
		"up to date": {service: `{"metadata":{"annotations":{"fairlead.io/network":"kube-system/storage-net@lhnet1","fairlead.io/selector":"{\"a\":\"b\"}"}},"spec":{"clusterIP":"None","clusterIPs":["None"]}}`, record: onStorageNet,
			want: ruling{Unchanged, ReasonUpToDate, "headless, for kube-system/storage-net@lhnet1", ""}},
		"only clusterIPs": {service: `{"metadata":{"annotations":{}},"spec":{"clusterIPs":["10.0.0.9"]}}`, record: onStorageNet,
			want: patched(ReasonHeadless, newServers, record, headless, `{"op":"remove","path":"/spec/clusterIPs"}`)},
		"server runs on a network": {service: empty, running: &rwx.Server{Pod: pod, Network: storageNet}, want: patched(ReasonHeadless, runs, record, headless)},
		"server runs on both networks": {service: empty, record: onStorageNet, running: &rwx.Server{Pod: pod, Network: backupNet, Networks: []multus.Attachment{backupNet, storageNet}},
			want: patched(ReasonHeadless, runs, record, headless)},
		"server runs on the cluster network": {service: `{"spec":{}}`, running: &rwx.Server{Pod: pod}, record: onStorageNet, want: ruling{Unchanged, ReasonNoNetwork, "", ""}},
		"headless by a value not applied": {service: `{"metadata":{"labels":{"longhorn.io/managed-by":"longhorn-manager","longhorn.io/share-manager":"pvc-a"}},"spec":{"type":"ClusterIP","clusterIP":"None","clusterIPs":["None"]}}`,
			want: patched(ReasonClusterIP, noServers, `{"op":"remove","path":"/spec/clusterIP"},{"op":"remove","path":"/spec/clusterIPs"},{"op":"add","path":"/spec/selector","value":{"longhorn.io/managed-by":"longhorn-manager","longhorn.io/share-manager":"pvc-a"}}`)},
		"headless by a value not applied, recorded": {service: `{"metadata":{"labels":{"longhorn.io/share-manager":"pvc-a"},"annotations":{"fairlead.io/network":"kube-system/storage-net@lhnet1"}},"spec":{"clusterIP":"None"}}`,
			want: patched(ReasonClusterIP, noServers, `{"op":"remove","path":"/metadata/annotations/fairlead.io~1network"},{"op":"remove","path":"/spec/clusterIP"},{"op":"add","path":"/spec/selector","value":{"longhorn.io/share-manager":"pvc-a"}}`)},
		"headless by a value not applied, labelled by a policy": {service: `{"metadata":{"labels":{"cost-center":"x","longhorn.io/share-manager":"pvc-a"}},"spec":{"clusterIP":"None"}}`,
			want: patched(ReasonClusterIP, noServers, `{"op":"remove","path":"/spec/clusterIP"},{"op":"add","path":"/spec/selector","value":{"longhorn.io/share-manager":"pvc-a"}}`)},
		"headless, without labels of Longhorn": {service: `{"metadata":{"labels":{"a":"b"}},"spec":{"clusterIP":"None"}}`, want: ruling{Unchanged, ReasonNoNetwork, "", ""}},
		"headless with its own selector":       {service: `{"metadata":{"labels":{"longhorn.io/share-manager":"pvc-a"}},"spec":{"clusterIP":"None","selector":{"c":"d"}}}`, want: ruling{Unchanged, ReasonNoNetwork, "", ""}},
		"headless by a value not applied, opted out": {service: `{"metadata":{"labels":{"longhorn.io/share-manager":"pvc-a"},"annotations":{"fairlead.io/opt-out":"true"}},"spec":{"clusterIP":"None"}}`,
			want: skip(ReasonOptOut, "annotation fairlead.io/opt-out keeps the Service headless, though no network is applied")},
		"no network": {service: `{"spec":{"type":"NodePort"}}`, want: ruling{Unchanged, ReasonNoNetwork, "", ""}},
		"opted out": {service: `{"metadata":{"annotations":{"fairlead.io/opt-out":"true"}},"spec":{}}`, record: onStorageNet,
			want: skip(ReasonOptOut, "annotation fairlead.io/opt-out keeps the volume off "+network)},
		"fixed addresses on the default network": {service: annotated(``), record: onStorageNet,
			request: rwx.Request{Identity: multus.Identity{Addresses: "10.0.0.9/24", MAC: "02:00:00:00:00:01"}},
			want:    patched(ReasonRecorded, newServers, record, `{"op":"add","path":"/metadata/annotations/fairlead.io~1addresses","value":"10.0.0.9/24"},{"op":"add","path":"/metadata/annotations/fairlead.io~1mac","value":"02:00:00:00:00:01"}`)},
		"addresses no longer fixed": {service: annotated(`"fairlead.io/network":"kube-system/storage-net@lhnet1","fairlead.io/addresses":"10.0.0.9/24"`), record: onStorageNet,
			want: patched(ReasonRecorded, newServers, `{"op":"remove","path":"/metadata/annotations/fairlead.io~1addresses"}`)},
		"not a ClusterIP Service": {service: `{"spec":{"type":"LoadBalancer"}}`, record: onStorageNet,
			want: skip(ReasonNotClusterIP, "a Service of type LoadBalancer can't be headless; the volume stays off "+network)},
		"fixed cluster IP": {service: `{"spec":{"clusterIP":"10.0.0.9"}}`, record: onStorageNet,
			want: skip(ReasonFixedAddress, "cluster IP 10.0.0.9 was requested; the volume stays off "+network)},
		"per-volume network": {service: empty, record: onBoth, request: byClass,
			want: patched(ReasonHeadless, teamNet.String()+": requested by StorageClass fast", strings.Replace(record, storageNet.String(), teamNet.String(), 1), headless)},
		"clients have to join": {service: empty, record: notYet, request: byClass, want: patched(ReasonHeadless, newServers, record, headless),
			warnings: []string{"volume waits for its network: " + requests + "kube-system/storage-net" + joined}},
		"clients have to join from the cluster network": {service: empty, request: byClass, want: skip(ReasonVolumeWaits, requests+"the cluster network"+joined)},
		"per-volume network, server runs elsewhere": {service: empty, record: onBoth, request: byClass, running: &rwx.Server{Pod: pod, Network: storageNet},
			want: patched(ReasonHeadless, runs, record, headless)},
		"malformed request": {service: empty, record: onBoth, request: rwx.Request{Problem: "annotation x of y: z"}, want: patched(ReasonHeadless, newServers, record, headless),
			warnings: []string{"volume waits for its network: annotation x of y: z; the volume stays on kube-system/storage-net"}},
	} {
		test.want.check(t, name, MutateService(longhorn.DefaultNames(), view[Service](t, test.service), test.running, test.record, test.request), test.warnings...)
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
		if annotations := genAnnotations(t, rwx.NetworkAnnotation, "", "x", storageNet.String(), backupNet.String()); annotations != nil {
			metadata["annotations"] = annotations
		}
		network := rapid.SampledFrom([]multus.Attachment{{}, storageNet, backupNet}).Draw(t, "network")
		identity := rapid.SampledFrom([]multus.Identity{{}, {Addresses: "10.0.0.9/24"}, {MAC: "02:00:00:00:00:01"}}).Draw(t, "fixed")
		checkMinimal(t, map[string]any{"metadata": metadata, "spec": spec}, func(s Service) Result {
			return MutateService(longhorn.DefaultNames(), s, nil, rollout.Record{Servers: network}, rwx.Request{Identity: identity})
		},
			[]string{"metadata", "annotations", rwx.NetworkAnnotation}, []string{"metadata", "annotations", rwx.SelectorAnnotation},
			[]string{"metadata", "annotations", rwx.AddressesAnnotation}, []string{"metadata", "annotations", rwx.MACAnnotation},
			[]string{"spec", "clusterIP"}, []string{"spec", "clusterIPs"}, []string{"spec", "selector"})
	})
}

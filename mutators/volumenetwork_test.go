package mutators

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

var (
	teamText = `{\"namespace\": \"team-x\", \"name\": \"nfs\", \"interface\": \"` + teamNet.Interface + `\"`
	// onBoth is the record of clients and servers on the network of all, and on one of a single volume.
	onBoth = rollout.Record{Clients: storageNet, Servers: storageNet, VolumeClients: []storage.Attachment{teamNet}, VolumeServers: []storage.Attachment{teamNet}}
)

func TestClientPodJoinsEveryVolumeNetwork(t *testing.T) {
	both := strings.TrimSuffix(networkText, "]") + ", " + teamText + "}]"
	ruling{
		Mutated, ReasonNetworkAdded, storageNet.String() + ", " + teamNet.String() + ": the record of clients says so",
		`[{"op":"add","path":"/metadata/annotations","value":{"k8s.v1.cni.cncf.io/networks":"` + both + `"}}]`,
	}.check(t, MutateClientPod(view[ClientPod](t, `{}`), inLonghorn, onBoth))
}

func TestNetworkThatCannotBeAddedKeepsNoOtherOff(t *testing.T) {
	pod := view[ClientPod](t, `{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"x@`+teamNet.Interface+`"}}}`)
	got := MutateClientPod(pod, inLonghorn, onBoth)
	want := []string{"interface name taken: interface " + teamNet.Interface + " is already asked for by network longhorn-system/x; give it another interface name so that " + teamNet.String() + " can have it"}
	if !slices.Equal(got.Warnings, want) {
		t.Errorf("warnings: got %q, want %q", got.Warnings, want)
	}
	got.Warnings = nil
	ruling{
		Mutated, ReasonNetworkAdded, storageNet.String() + ": the record of clients says so",
		`[{"op":"add","path":"/metadata/annotations/k8s.v1.cni.cncf.io~1networks","value":"x@` + teamNet.Interface + `,` + storageNet.String() + `"}]`,
	}.check(t, got)
}

func TestServerPodHasWhatItsServiceRecords(t *testing.T) {
	fixed := storage.Identity{Addresses: "10.0.0.9/24,fd00::9", MAC: "02:00:00:00:00:01"}
	service := &storage.Service{Name: "pvc-a", ClusterIP: "None", Recorded: teamNet, Identity: fixed}
	text := teamText + `, \"ips\": [\"10.0.0.9/24\", \"fd00::9\"], \"mac\": \"02:00:00:00:00:01\"}]`
	for name, test := range map[string]struct {
		pod  string
		want ruling
	}{
		"fixed addresses": {`{}`, ruling{
			Mutated, ReasonNetworkAdded, teamNet.String() + ": Service pvc-a has it recorded",
			`[{"op":"add","path":"/metadata/annotations","value":{"k8s.v1.cni.cncf.io/networks":"[` + text + `"}}]`,
		}},
		"beside a network in the short form": {`{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"x@net1"}}}`, ruling{
			Mutated, ReasonNetworkAdded, teamNet.String() + ": Service pvc-a has it recorded",
			addAnnotation + `[{\"namespace\": \"longhorn-system\", \"name\": \"x\", \"interface\": \"net1\"}, ` + text + `"}]`,
		}},
		"other addresses are somebody's": {`{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"[` + teamText + `,\"ips\":[\"10.0.0.8\"]}]"}}}`, ruling{
			Skipped, ReasonOtherAddresses, "network " + teamNet.String() + " asks for other addresses there: 10.0.0.8; take them away so that the volume keeps its own", "",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			test.want.check(t, MutateServerPod(view[ServerPod](t, test.pod), inLonghorn, service, rollout.Record{}))
		})
	}
}

func TestServiceOfAVolumeWithANetworkOfItsOwn(t *testing.T) {
	recorded := func(n storage.Attachment) string {
		return `[{"op":"add","path":"/metadata/annotations","value":{"fairlead.io/network":"` + n.String() + `"}},{"op":"add","path":"/spec/clusterIP","value":"None"}]`
	}
	request := storage.Request{Network: teamNet.Network, Source: "StorageClass fast"}
	notYet := rollout.Record{Clients: storageNet, Servers: storageNet, VolumeClients: []storage.Attachment{teamNet}}
	const waits = "StorageClass fast asks for network team-x/nfs, which not every CSI plugin pod is on yet; the volume stays on "
	for name, test := range map[string]struct {
		record   rollout.Record
		request  storage.Request
		running  *storage.Server
		want     ruling
		warnings []string
	}{
		"servers may be on it": {record: onBoth, request: request, want: ruling{Mutated, ReasonHeadless, teamNet.String() + ": StorageClass fast asks for it", recorded(teamNet)}},
		"not yet": {
			record: notYet, request: request, want: ruling{Mutated, ReasonHeadless, "kube-system/storage-net@lhnet1: servers are on it", recorded(storageNet)},
			warnings: []string{"volume waits for its network: " + waits + "kube-system/storage-net until they are and it is detached"},
		},
		"not yet, and all are on the cluster network": {
			request: request, want: ruling{Skipped, ReasonVolumeWaits, waits + "the cluster network until they are and it is detached", ""},
		},
		"its server runs elsewhere": {
			record: onBoth, request: request, running: &storage.Server{Pod: "share-manager-pvc-a", Network: storageNet},
			want: ruling{Mutated, ReasonHeadless, "kube-system/storage-net@lhnet1: server pod share-manager-pvc-a runs on it", recorded(storageNet)},
		},
		"a request that can't be read": {
			record: onBoth, request: storage.Request{Problem: "annotation x of y: z"},
			want:     ruling{Mutated, ReasonHeadless, "kube-system/storage-net@lhnet1: servers are on it", recorded(storageNet)},
			warnings: []string{"volume waits for its network: annotation x of y: z; the volume stays on kube-system/storage-net"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := MutateService(view[Service](t, `{"spec":{}}`), test.running, test.record, test.request)
			if !slices.Equal(got.Warnings, test.warnings) {
				t.Errorf("warnings: got %q, want %q", got.Warnings, test.warnings)
			}
			got.Warnings = nil
			test.want.check(t, got)
		})
	}
}

func TestPatchesForVolumeNetworksAreMinimalAndIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := genPod(t)
		checkMinimal(t, pod, func(p ServerPod) Result {
			return MutateServerPod(p, inLonghorn, &storage.Service{ClusterIP: "None", Recorded: teamNet, Identity: storage.Identity{Addresses: "10.0.0.9"}}, rollout.Record{})
		}, []string{"metadata", "annotations", storage.NetworksAnnotation})
		checkMinimal(t, pod, func(p ClientPod) Result {
			return MutateClientPod(p, inLonghorn, rollout.Record{VolumeClients: []storage.Attachment{teamNet}})
		}, []string{"metadata", "annotations", storage.NetworksAnnotation})
	})
}

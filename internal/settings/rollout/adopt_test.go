package rollout

import (
	"reflect"
	"testing"

	"github.com/fairlead-io/fairlead/internal/storage"
)

func TestRecordBeginsWithWhatIsSeen(t *testing.T) {
	volumes := []storage.Attachment{storage.VolumeAttachment(netTwo.Network)}
	for name, test := range map[string]struct {
		but  func(*Rollout)
		want Record
	}{
		"no DaemonSet":            {func(r *Rollout) { r.DaemonSet = DaemonSet{} }, Record{}},
		"on the cluster network":  {func(r *Rollout) { *r = atRest(clusterNet) }, Record{}},
		"on a network":            {func(*Rollout) {}, Record{Clients: netOne, Servers: netOne}},
		"a client is not there":   {func(r *Rollout) { r.Clients[1] = client("node-2", clusterNet) }, Record{Clients: netOne}},
		"a client is not Ready":   {func(r *Rollout) { r.Clients[1].Ready = false }, Record{Clients: netOne}},
		"an unreadable template":  {func(r *Rollout) { r.DaemonSet.Unreadable = true }, Record{}},
		"with per-volume clients": {func(r *Rollout) { r.DaemonSet.VolumeNetworks = volumes }, Record{Clients: netOne, Servers: netOne, VolumeClients: volumes}},
	} {
		t.Run(name, func(t *testing.T) {
			r := atRest(netOne)
			test.but(&r)
			if got := Adopt(r.DaemonSet, r.Clients); !reflect.DeepEqual(got, test.want) {
				t.Fatalf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestObserveLetsServersFollowOnceEveryClientIsThere(t *testing.T) {
	for name, test := range map[string]struct {
		but  func(*Rollout)
		want Record
	}{
		"every client is there": {func(*Rollout) {}, Record{Clients: netOne, Servers: netOne, ServersSince: noon}},
		"the record of before doesn't matter": {
			func(r *Rollout) { r.Record = Record{Clients: netTwo, Servers: netTwo} },
			Record{Clients: netOne, Servers: netOne, ServersSince: noon},
		},
		"on two networks": {
			func(r *Rollout) {
				both := []storage.Attachment{netTwo, netOne}
				r.DaemonSet.Network, r.DaemonSet.Networks = netTwo, both
				for i := range r.Clients {
					r.Clients[i].Network, r.Clients[i].Networks, r.Clients[i].NetworksReported = netTwo, both, both
				}
			},
			Record{Clients: netOne, Servers: netOne, ServersSince: noon},
		},
		"no DaemonSet":             {func(r *Rollout) { r.DaemonSet = DaemonSet{} }, Record{ServersSince: noon}},
		"a template not seen yet":  {func(r *Rollout) { r.DaemonSet.Observed = false }, Record{Clients: netOne, ServersSince: noon}},
		"a client on the old":      {func(r *Rollout) { r.Clients[1] = client("node-2", clusterNet) }, Record{Clients: netOne, ServersSince: noon}},
		"a client not Ready":       {func(r *Rollout) { r.Clients[1].Ready = false }, Record{Clients: netOne, ServersSince: noon}},
		"a client without address": {func(r *Rollout) { r.Clients[1].Reported = false }, Record{Clients: netOne, ServersSince: noon}},
		"a client that is going":   {func(r *Rollout) { r.Clients[1].Terminating = true }, Record{Clients: netOne, ServersSince: noon}},
		"a client that is to come": {func(r *Rollout) { r.Clients = r.Clients[:1] }, Record{Clients: netOne, ServersSince: noon}},
		"back on the cluster network": {
			func(r *Rollout) {
				r.DaemonSet.Network = clusterNet
				r.Clients = []storage.Client{client("node-1", clusterNet), client("node-2", clusterNet)}
			},
			Record{ServersSince: noon},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := atRest(netOne)
			test.but(&r)
			if got := Observe(r); !reflect.DeepEqual(got, test.want) {
				t.Fatalf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

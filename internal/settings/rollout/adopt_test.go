package rollout

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestAdopt(t *testing.T) {
	volumes := []multus.Attachment{multus.VolumeAttachment(netTwo.Network)}
	for name, test := range map[string]struct {
		change func(*Rollout)
		want   Record
	}{
		"no DaemonSet":            {func(r *Rollout) { r.DaemonSet = DaemonSet{} }, Record{}},
		"on the cluster network":  {func(r *Rollout) { *r = onCluster() }, Record{}},
		"on a network":            {func(*Rollout) {}, Record{Clients: netOne, Servers: netOne}},
		"client off the network":  {func(r *Rollout) { r.Clients[1] = client("node-2", clusterNet) }, Record{Clients: netOne}},
		"unready client":          {func(r *Rollout) { r.Clients[1].Ready = false }, Record{Clients: netOne}},
		"unreadable template":     {func(r *Rollout) { r.DaemonSet.Unreadable = true }, Record{}},
		"with per-volume clients": {func(r *Rollout) { r.DaemonSet.VolumeNetworks = volumes }, Record{Clients: netOne, Servers: netOne, VolumeClients: volumes}},
	} {
		r := onOne()
		test.change(&r)
		must.Equal(t, Adopt(r.DaemonSet, r.Clients), test.want, "%s", name)
	}
}

func TestServersFollowObservedClients(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Rollout)
		want   Record
	}{
		"every client is on the network": {func(*Rollout) {}, Record{Clients: netOne, Servers: netOne, ServersSince: noon}},
		"former record is ignored":       {func(r *Rollout) { r.Record = Record{Clients: netTwo, Servers: netTwo} }, Record{Clients: netOne, Servers: netOne, ServersSince: noon}},
		"on two networks":                {putOnBoth, Record{Clients: netOne, Servers: netOne, ServersSince: noon}},
		"no DaemonSet":                   {func(r *Rollout) { r.DaemonSet = DaemonSet{} }, Record{ServersSince: noon}},
		"unobserved template":            {func(r *Rollout) { r.DaemonSet.Observed = false }, Record{Clients: netOne, ServersSince: noon}},
		"client off the network":         {func(r *Rollout) { r.Clients[1] = client("node-2", clusterNet) }, Record{Clients: netOne, ServersSince: noon}},
		"unready client":                 {func(r *Rollout) { r.Clients[1].Ready = false }, Record{Clients: netOne, ServersSince: noon}},
		"client without address":         {func(r *Rollout) { r.Clients[1].Reported = false }, Record{Clients: netOne, ServersSince: noon}},
		"terminating client":             {func(r *Rollout) { r.Clients[1].Terminating = true }, Record{Clients: netOne, ServersSince: noon}},
		"missing client":                 {func(r *Rollout) { r.Clients = r.Clients[:1] }, Record{Clients: netOne, ServersSince: noon}},
		"back on the cluster network":    {func(r *Rollout) { r.DaemonSet.Network, r.Clients = clusterNet, onCluster().Clients }, Record{ServersSince: noon}},
	} {
		r := onOne()
		test.change(&r)
		must.Equal(t, Observe(r), test.want, "%s", name)
	}
}

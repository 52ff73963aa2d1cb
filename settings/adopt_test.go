package settings

import (
	"reflect"
	"testing"

	"github.com/fairlead-io/fairlead/storage"
)

func TestAdoptTakesClientsFromTheTemplateAndNoServers(t *testing.T) {
	for name, test := range map[string]struct {
		daemonSet DaemonSet
		want      Record
	}{
		"no DaemonSet":           {},
		"a plain one":            {daemonSet: DaemonSet{Found: true}},
		"one on a network":       {daemonSet: DaemonSet{Found: true, Network: netOne}, want: Record{Clients: netOne}},
		"one that can't be read": {daemonSet: DaemonSet{Found: true, Network: netOne, Unreadable: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Adopt(test.daemonSet); !reflect.DeepEqual(got, test.want) {
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

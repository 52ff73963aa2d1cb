package rollout

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

func TestRefusedWriteStopsNoOther(t *testing.T) {
	refusedWrite := func(kind catalog.BlockerKind, name string) (Refusal, catalog.Blocker) {
		b := blocker(kind, name, "a policy says no")
		return Refusal{Kind: kind, Name: name, Message: b.Message}, b
	}
	ofService, serviceA := refusedWrite(catalog.BlockedByService, "pvc-a")
	ofClient, clientA := refusedWrite(catalog.BlockedByClient, "csi-node-1")
	ofTemplate, template := refusedWrite(catalog.BlockedByDaemonSet, "csi")
	clientA.Nodes = []string{"node-1"}
	refused := func(refusal Refusal, change func(*Rollout)) func(*Rollout) {
		return func(r *Rollout) {
			r.Record.Refused = []Refusal{refusal}
			change(r)
		}
	}
	services := func(volumes ...string) []rwx.Service {
		var list []rwx.Service
		for _, v := range volumes {
			list = append(list, service(v, clusterNet))
		}
		return list
	}
	notApplied := func(b catalog.Blocker) Step {
		return with(waits(b), func(s *Step) { s.Phase = PhaseSwitching })
	}
	checkSteps(t, map[string]stepTest{
		"the next Service is replaced": {onOne, refused(ofService, func(r *Rollout) { r.Services = services("pvc-a", "pvc-b") }),
			replaces(service("pvc-b", clusterNet))},
		"the setting is not applied":       {onOne, refused(ofService, func(r *Rollout) { r.Services = services("pvc-a") }), notApplied(serviceA)},
		"a Service that must be recreated": {onOne, refused(ofService, func(r *Rollout) { r.Record.Replacing = "pvc-a" }), notApplied(serviceA)},
		"a Service that is being recreated comes before the next": {onOne, func(r *Rollout) {
			r.Record.Replacing, r.Services = "pvc-a", services("pvc-b")
		}, notApplied(blocker(catalog.BlockedByService, "pvc-a", "Service pvc-a is being recreated"))},
		"per-volume networks go on": {onVolumeNetworks(true, netX), refused(ofService, func(r *Rollout) {
			r.Services = append(services("pvc-a"), service("pvc-of-team-x", netOne))
		}), with(notApplied(serviceA), func(s *Step) {
			s.Action, s.Services = ReplaceServices, []rwx.Service{service("pvc-of-team-x", netOne)}
			s.Volumes = Progress{Phase: PhaseSwitching, Message: "replacing 1 Service of detached volumes"}
		})},
		"leaving: clients stay while a Service is on the network": {onOne, refused(ofService, func(r *Rollout) {
			r.Desired, r.Record.Servers, r.Services = clusterNet, clusterNet, []rwx.Service{service("pvc-a", netOne)}
		}), waits(serviceA)},
		"an unreadable record is not the cluster network": {enabling, func(r *Rollout) {
			r.Record = Record{Unknown: true, Problem: "status.clients.network: garbage"}
		}, Step{Phase: PhaseInvalid, Message: "status.clients.network: garbage"}},
		"the next client restarts":   {enabling, refused(ofClient, func(*Rollout) {}), restarts(enabling().Clients[1])},
		"the last client is refused": {enabling, refused(ofClient, func(r *Rollout) { r.Clients[1] = onOne().Clients[1] }), rolling(1, Nothing, clientA)},
		"the template is refused":    {enabling, refused(ofTemplate, func(r *Rollout) { r.DaemonSet.Network = clusterNet }), rolling(0, Nothing, template)},
		"the strategy is refused":    {rolled, refused(ofTemplate, func(*Rollout) {}), rolling(2, Nothing, template)},
	})
}

package rollout

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// halfway is a cluster of three nodes of which the client of the first is on the network since a while.
func halfway(since time.Duration) Rollout {
	r := enabling()
	r.DaemonSet.Wanted = 3
	r.Clients = append(r.Clients, client("node-3", clusterNet))
	r.Clients[2].Revision = "6"
	r.Clients[0] = client("node-1", netOne)
	r.Clients[0].ReadySince = noon.Add(-since)
	return r
}

// A client that has no address of its own can't reach servers, so the next one keeps its network.
func TestNextClientRestartsWhenTheOneBeforeHasItsAddress(t *testing.T) {
	const stopped = "; the other CSI plugin pods stay as they are until it has an address of its own: look at the network's ipam, and at Multus on the node; or set the value back"
	none := "has no address on " + netOne.String() + ": Multus reports none"
	for name, c := range map[string]struct {
		since    time.Duration
		change   func(*rwx.Client)
		restarts string
		waits    string
	}{
		"it has":                  {time.Second, func(*rwx.Client) {}, "csi-node-2", ""},
		"it has none yet":         {time.Minute, func(c *rwx.Client) { c.Reported = false }, "", none},
		"it has none for long":    {rwx.ReportWithin, func(c *rwx.Client) { c.Reported = false }, "", none + stopped},
		"another pod has it, too": {time.Second, func(c *rwx.Client) { c.Clash = rwx.Clash{Pod: "share-manager-a"} }, "", "has an address on " + netOne.String() + " that pod share-manager-a has too: the network assigns addresses twice"},
	} {
		t.Run(name, func(t *testing.T) {
			r := halfway(c.since)
			c.change(&r.Clients[0])
			step := Next(r)
			var pods, waits []string
			for _, c := range step.Clients {
				pods = append(pods, c.Pod)
			}
			for _, b := range step.Blockers {
				waits = append(waits, strings.TrimPrefix(b.Message, "CSI plugin pod csi-node-1 on node-1 "))
			}
			must.Equal(t, strings.Join(pods, " "), c.restarts)
			must.Equal(t, strings.Join(waits, "; "), c.waits)
			// Setting the value back needs no drained cluster.
			r.Desired, r.Volumes = clusterNet, []rwx.Volume{attached("pvc-a", "node-2")}
			must.Equal(t, fmt.Sprint(Next(r).Action, Next(r).Network), fmt.Sprint(RecordClients, clusterNet))
		})
	}
}

// All clients are on the network by what they ask for, and one has no address: the network is abandoned as if it had not joined.
func TestNetworkWithoutAddressesIsAbandoned(t *testing.T) {
	r := rolled()
	r.Clients[1].Reported, r.Desired, r.Volumes = false, clusterNet, []rwx.Volume{attached("pvc-a", "node-1")}
	must.Equal(t, Next(r).Action, RecordClients)
	r.Clients[1].Reported = true
	must.Equal(t, Next(r).Phase, PhaseWaiting, "with all addresses, the gate counts")
}

// After a reboot, a client may start before Multus: it requests the network, and never gets it.
func TestClientThatStartedBeforeMultusRestarts(t *testing.T) {
	alone := rwx.Volume{}
	for name, c := range map[string]struct {
		since     time.Duration
		restarted int
		attached  rwx.Volume
		others    bool // have their addresses
		want      Action
	}{
		"idle":                             {rwx.ReportWithin + 1, 0, alone, true, RestartClients},
		"just started":                     {time.Minute, 0, alone, true, Nothing},
		"restarted once":                   {rwx.ReportWithin + 1, 1, alone, true, Nothing},
		"restarted once, a while ago":      {2*rwx.ReportWithin + 1, 1, alone, true, RestartClients},
		"no client has an address":         {rwx.ReportWithin + 1, 0, alone, false, Nothing},
		"a volume is attached on its node": {rwx.ReportWithin + 1, 0, attached("pvc-a", "node-2"), true, Nothing},
	} {
		t.Run(name, func(t *testing.T) {
			r := onOne()
			r.Clients[1].Reported, r.Clients[1].ReadySince, r.Restarted = false, noon.Add(-c.since), map[string]int{"node-2": c.restarted}
			if r.Clients[0].Reported = c.others; c.attached.Name != "" {
				r.Volumes = []rwx.Volume{c.attached}
			}
			step := Next(r)
			must.True(t, step.Action == c.want && step.Applied, "got %+v", step)
			must.True(t, c.want == Nothing || step.Clients[0].Node == "node-2", "got %+v", step.Clients)
		})
	}
}

// Servers join when each client has an address of its own.
func TestServersWaitForAddressesOfTheirOwn(t *testing.T) {
	r := rolled()
	must.Equal(t, Next(r).Action, ResumeTemplate)
	r.Clients[0].Clash = rwx.Clash{Pod: "csi-node-2"}
	step := Next(r)
	must.True(t, step.Action == Nothing && len(step.Blockers) == 1 && step.Network == multus.Attachment{}, "got %+v", step)
}

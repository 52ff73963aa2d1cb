package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/e2e/machine"
	endtoend "github.com/fairlead-io/fairlead/e2e/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs"
)

// demoNFS is the demo's second act: three real NFS servers, ten nodes, one server
// killed. It needs a machine of its own, since EndpointSlices name no loopback address.
func demoNFS() int {
	if why := machine.Unavailable(); why != "" {
		fmt.Printf("\nThe second act, NFS services, is left out here: %s.\n", why)
		return 0
	}
	return machine.Run(endtoend.Machine(), func() int { return withSignals(nfsAct) })
}

func nfsAct(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "fairlead-demo-nfs-")
	if err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	out, end, err := stage(false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	t := newTour(out)
	fmt.Fprintln(out, "\nThe second act: NFS services")
	t.say("Starting a control plane with ten nodes, in network namespaces of its own")
	c, err := endtoend.Start(ctx, endtoend.Options{Dir: dir, Nodes: 10, Out: os.Stdout})
	if err != nil {
		return err
	}
	defer func() {
		t.say("Ending everything that was started")
		err = errors.Join(err, c.Stop())
	}()
	t.kubectl, t.kubeconfig = c.Kubectl, c.State.Kubeconfig
	return nfsTour(ctx, t, c)
}

const demoService = "pool"

func nfsTour(ctx context.Context, t *tourist, c *endtoend.Cluster) error {
	t.say("Three real NFS servers, and one NFSService that names them")
	servers := make([]*endtoend.Server, 3)
	var addresses []netip.Addr
	for i := range servers {
		var err error
		if servers[i], err = c.StartServer(ctx, endtoend.ServerAddress(i+1)); err != nil {
			return err
		}
		addresses = append(addresses, servers[i].Address)
	}
	if err := c.CreateService(ctx, endtoend.NewService(demoService, nfs.PerNodeStable, addresses...)); err != nil {
		return err
	}
	t.run(ctx, "get", "nfsservices")

	t.say("A workload on ten nodes: each node is given a server as its volume is attached")
	if err := c.UseNodes(ctx, demoService, 10); err != nil {
		return err
	}
	if err := c.CreateVolume(ctx, endtoend.Volume{Name: "data", Service: demoService}); err != nil {
		return err
	}
	if err := c.CreateClients(ctx, demoService, "data", 10); err != nil {
		return err
	}
	if _, err := c.WaitAssigned(ctx, 10, "data"); err != nil {
		return err
	}
	if err := c.WaitService(ctx, demoService, func(s *v1alpha1.NFSService) bool { return s.Status.Nodes == 10 }); err != nil {
		return err
	}
	t.fairlead(ctx, "nfs", endtoend.Namespace+"/"+demoService)

	t.say("What would it mean to take one server out?")
	t.fairlead(ctx, "nfs", "plan", endtoend.Namespace+"/"+demoService, "--drain", addresses[2].String())

	t.say("A server is killed: its nodes' addresses point to the others, and nothing is mounted again")
	killed := time.Now()
	if err := servers[0].Kill(); err != nil {
		return err
	}
	if err := c.WaitService(ctx, demoService, func(s *v1alpha1.NFSService) bool {
		for _, slot := range s.Status.Slots {
			if a, err := netip.ParseAddrPort(slot.Backend); err != nil || a.Addr() == addresses[0] {
				return false
			}
		}
		return true
	}); err != nil {
		return err
	}
	t.note("no address points to it %.1f s after its death (three probes, one a second)", time.Since(killed).Seconds())
	t.fairlead(ctx, "nfs", endtoend.Namespace+"/"+demoService)

	t.say("It comes back")
	if err := servers[0].Start(ctx); err != nil {
		return err
	}
	if err := c.WaitService(ctx, demoService, func(s *v1alpha1.NFSService) bool { return s.Status.HealthyBackends == 3 }); err != nil {
		return err
	}
	t.run(ctx, "get", "nfsservices")
	return t.err
}

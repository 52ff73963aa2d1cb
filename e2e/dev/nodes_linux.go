package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fairlead-io/fairlead/e2e/nodes"
)

// serveNodes runs a whole Longhorn on real nodes, in a machine of its own.
func serveNodes(ctx context.Context) {
	serveInMachine(nodes.Machine(), func() error { return serveNodesInside(ctx) })
}

func serveNodesInside(ctx context.Context) error {
	dir, err := filepath.Abs(devDir)
	if err != nil {
		return err
	}
	fmt.Println("starting three nodes (five minutes on two cores, with Longhorn)")
	c, err := nodes.Start(ctx, nodes.Options{Dir: dir, Nodes: 3, Image: os.Getenv(imageVariable), Out: os.Stdout})
	if err != nil {
		return err
	}
	if err := prepareNodes(ctx, c); err != nil {
		return err
	}
	if err := offerNodes(dir, c); err != nil {
		return err
	}
	if err := relay(c.Sandbox); err != nil {
		return err
	}
	<-ctx.Done()
	return c.Stop()
}

// prepareNodes installs Longhorn and Fairlead, and a volume on the storage network with a writer and a reader.
func prepareNodes(ctx context.Context, c *nodes.Cluster) error {
	steps := []struct {
		say string
		do  func() error
	}{
		{"installing Longhorn", func() error { return c.InstallLonghorn(ctx) }},
		{"putting shared volumes on the storage network", func() error { return storageNetworkOn(ctx, c) }},
		{"installing Fairlead", func() error {
			if err := c.InstallFairlead(ctx, nodes.Installation{Overlay: "cert-manager"}, "fairlead-webhook", "fairlead-controller"); err != nil {
				return err
			}
			return c.WaitWorking(ctx)
		}},
		{"mounting a shared volume on two nodes", func() error { return mountShared(ctx, c) }},
	}
	for _, step := range steps {
		fmt.Println(step.say)
		if err := step.do(); err != nil {
			return err
		}
	}
	return nil
}

func storageNetworkOn(ctx context.Context, c *nodes.Cluster) error {
	const network, shared = "storage-network", "storage-network-for-rwx-volume-enabled"
	if err := c.CreateNetworks(ctx); err != nil {
		return err
	}
	if err := c.Set(ctx, network, nodes.StorageNetwork); err != nil {
		return err
	}
	if err := c.Set(ctx, shared, "true"); err != nil {
		return err
	}
	return c.WaitApplied(ctx, 3*time.Minute, network, shared)
}

func mountShared(ctx context.Context, c *nodes.Cluster) error {
	if err := c.CreateClaim(ctx, "shared", "longhorn-hard", "ReadWriteMany"); err != nil {
		return err
	}
	for _, w := range []nodes.Workload{
		{Name: "writer", Claim: "shared", Node: "node-1", Command: "while date >>/data/log; do sleep 1; done"},
		{Name: "reader", Claim: "shared", Node: "node-2"},
	} {
		if err := c.Run(ctx, w); err != nil {
			return err
		}
	}
	for _, name := range []string{"writer", "reader"} {
		if _, err := c.WaitWorkload(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// onText runs a command in the machine or on a node. The machine's first process is the child of the one in .dev/pid.
const onText = `#!/bin/sh
# on machine COMMAND...   on node-1 COMMAND...
enter="nsenter -t $(pgrep -P "$(cat %[1]s/pid)") -m -n -p -u -i --"
where=$1
shift
[ "$where" = machine ] || enter="$enter nsenter -t $(cat "%[1]s/$where/pid") -m -n -p -u -i --"
exec $enter "$@"
`

// offerNodes writes the command on.
func offerNodes(dir string, c *nodes.Cluster) error {
	for _, n := range c.Nodes {
		if err := os.WriteFile(filepath.Join(n.Dir, "pid"), fmt.Append(nil, n.Pid()), 0o644); err != nil {
			return err
		}
	}
	bin := filepath.Join(dir, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(bin, "on"), fmt.Appendf(nil, onText, dir), 0o755)
}

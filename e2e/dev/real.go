package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/fairlead-io/fairlead/e2e/beside"
	versions "github.com/fairlead-io/fairlead/e2e/longhorn"
	"github.com/fairlead-io/fairlead/e2e/machine"
	"github.com/fairlead-io/fairlead/e2e/nodes"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// Without these, a stand-in plays Longhorn.
const (
	// real is Longhorn's own manager. The name of a version, such as v1.8.1, is the same of that version.
	real = "real"
	// realNodes is a whole Longhorn on real nodes.
	realNodes = "nodes-real"
)

// realVersion reports whether longhorn names Longhorn's own manager, and its version; empty is the default.
func realVersion(longhorn string) (version string, is bool) {
	if strings.HasPrefix(longhorn, "v") {
		return longhorn, true
	}
	return "", longhorn == real
}

// canRun says why a cluster with this Longhorn cannot run here.
func canRun(longhorn string) error {
	switch _, isReal := realVersion(longhorn); {
	case longhorn == "":
		return nil
	case isReal:
		if version, _ := realVersion(longhorn); version != "" {
			if _, err := versions.Named(version); err != nil {
				return err
			}
		}
		if why := machine.Unavailable(); why != "" {
			return fmt.Errorf("a cluster with Longhorn's own manager cannot run here: %s (root and Linux are needed); make up without LONGHORN runs a stand-in", why)
		}
		return nil
	case longhorn == realNodes:
		if why := nodes.Unavailable(); why != "" {
			return fmt.Errorf("real nodes cannot run here: %s; make up without NODES runs simulated ones", why)
		}
		return nil
	}
	return fmt.Errorf("there is no cluster %q: say LONGHORN=real for Longhorn's own manager, or LONGHORN=%s or another version, NODES=real for a whole Longhorn on real nodes, or nothing for a stand-in", longhorn, versions.Default.Name)
}

const workload = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: nginx, volumeMounts: [{name: data, mountPath: /data}]}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: pvc-shared}}]
`

// serveReal runs a cluster with Longhorn's own manager, in a machine of its own.
func serveReal(ctx context.Context, version string) {
	serveInMachine(beside.Machine(), func() error { return serveRealInside(ctx, version) })
}

// serveInMachine serves in a machine, which ends when this process does.
func serveInMachine(spec machine.Spec, serve func() error) {
	spec.Listen = "127.0.0.1:0"
	os.Exit(machine.Run(spec, func() int {
		if err := serve(); err != nil {
			fmt.Fprintln(os.Stderr, "dev:", err)
			return 1
		}
		return 0
	}))
}

func serveRealInside(ctx context.Context, version string) error {
	binary, err := fairleadBinary()
	if err != nil {
		return err
	}
	fmt.Println("starting a cluster with Longhorn's own manager (two minutes on two cores)")
	c, err := beside.Start(ctx, beside.Options{Dir: devDir, Fairlead: binary, Version: version, Out: os.Stdout})
	if err != nil {
		return err
	}
	fmt.Println("installing Fairlead")
	if err := install(ctx, c.Sandbox); err != nil {
		return err
	}
	if err := c.CreateVolume(ctx, "pvc-shared", "rwx"); err != nil {
		return err
	}
	if _, err := c.Kubectl(ctx, workload, "apply", "-f", "-"); err != nil {
		return err
	}
	fmt.Println("waiting until volume pvc-shared is attached")
	if err := c.WaitVolume(ctx, "pvc-shared", "attached"); err != nil {
		return err
	}
	if err := relay(c.Sandbox); err != nil {
		return err
	}
	<-ctx.Done()
	return c.Stop()
}

// relay offers the cluster outside the machine.
func relay(s *sandbox.Sandbox) error {
	listener, err := machine.Listener()
	if err != nil {
		return err
	}
	api, err := url.Parse(s.Config.Host)
	if err != nil {
		return err
	}
	beside.StartRelay(listener, api.Host)
	return offer(s, listener.Addr().String())
}

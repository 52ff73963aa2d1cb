package main

import (
	"context"
	"fmt"
	"net/url"
	"os"

	"github.com/fairlead-io/fairlead/e2e/beside"
	"github.com/fairlead-io/fairlead/e2e/machine"
)

// real is Longhorn's own manager; without it, the stand-in plays Longhorn.
const real = "real"

// canRun says why a cluster with this Longhorn cannot run here.
func canRun(longhorn string) error {
	switch longhorn {
	case "":
		return nil
	case real:
		if why := machine.Unavailable(); why != "" {
			return fmt.Errorf("a cluster with Longhorn's own manager cannot run here: %s (root and Linux are needed); make up without LONGHORN runs a stand-in", why)
		}
		return nil
	}
	return fmt.Errorf("there is no Longhorn %q: say LONGHORN=real for Longhorn's own manager, or nothing for a stand-in", longhorn)
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

// serveReal runs a cluster with Longhorn's own manager, in a machine of its own, which ends when this process does.
func serveReal(ctx context.Context) {
	spec := beside.Machine()
	spec.Listen = "127.0.0.1:0"
	os.Exit(machine.Run(spec, func() int {
		if err := serveInMachine(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "dev:", err)
			return 1
		}
		return 0
	}))
}

func serveInMachine(ctx context.Context) error {
	binary, err := fairleadBinary()
	if err != nil {
		return err
	}
	fmt.Println("starting a cluster with Longhorn's own manager (two minutes on two cores)")
	c, err := beside.Start(ctx, beside.Options{Dir: devDir, Fairlead: binary, Out: os.Stdout})
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
	listener, err := machine.Listener()
	if err != nil {
		return err
	}
	api, err := url.Parse(c.Config.Host)
	if err != nil {
		return err
	}
	beside.StartRelay(listener, api.Host)
	if err := offer(c.Sandbox, listener.Addr().String()); err != nil {
		return err
	}
	<-ctx.Done()
	return c.Stop()
}

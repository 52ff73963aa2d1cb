// Command csidriver serves Fairlead's CSI driver for csi-sanity: the Identity and Node
// RPCs of the product, over mount-utils' fake mounter, and Controller RPCs of its own.
// csi-sanity creates and publishes a volume for most of its specs, and the product has
// no Controller RPCs: its attacher writes VolumeAttachments.
//
// It is a program of its own: csi-sanity needs CSI spec v1.13.0, which has no
// VolumeCondition any more, and the product needs v1.12.0.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/fairlead-io/fairlead/internal/csi/identity"
	"github.com/fairlead-io/fairlead/internal/csi/mounts/fakemounts"
	"github.com/fairlead-io/fairlead/internal/csi/node"
	"github.com/fairlead-io/fairlead/internal/csi/server"
)

const driver, nodeName = "nfs.fairlead.io", "node-1"

func main() {
	socket := flag.String("socket", "", "path of the socket")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, *socket); err != nil {
		fmt.Fprintln(os.Stderr, "csidriver:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, socket string) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	nodes := &node.Server{
		Driver: driver, NodeName: nodeName, System: fakemounts.New(), Timeouts: node.DefaultTimeouts, PageSize: os.Getpagesize(), Log: log,
	}
	controllers := &volumes{byName: map[string]*csi.Volume{}}
	identities := &withController{identity.Server{Driver: driver, Version: "test"}}
	return server.Serve(ctx, socket, server.Options{Log: log, StopTimeout: time.Second}, nil, identities.Register, nodes.Register, controllers.Register)
}

//go:build !linux

package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/fairlead-io/fairlead/cli"
)

// csiNodeCommand is for Linux, where nodes mount NFS.
func csiNodeCommand() *cobra.Command {
	o := &cli.ClusterOptions{}
	cmd := &cobra.Command{Use: "csi-node", Short: "Mount the shares of NFS services on this node (Linux only)", Args: cobra.NoArgs}
	o.Setup(cmd, func(context.Context, *slog.Logger) error { return errors.New("csi-node runs on Linux only") })
	return cmd
}

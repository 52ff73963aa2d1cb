//go:build !linux

package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"
)

// csiNodeCommand is for Linux, where nodes mount NFS.
func csiNodeCommand() *cobra.Command {
	o := &commonOptions{}
	cmd := &cobra.Command{Use: "csi-node", Short: "Mount the shares of NFS services on this node (Linux only)", Args: cobra.NoArgs}
	o.setup(cmd, func(context.Context, *slog.Logger) error { return errors.New("csi-node runs on Linux only") })
	return cmd
}

package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/internal/cephclients"
	"github.com/fairlead-io/fairlead/internal/cephclients/server"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/httpserver"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
)

// cephClientsCertificates is where the component fencing-ceph-clients mounts the Secret, on both sides.
const cephClientsCertificates = "/etc/fairlead-ceph-clients"

func cephClientsCommand() *cobra.Command {
	var o cli.ClusterOptions
	var listen, certificates, copyTo string
	cmd := &cobra.Command{
		Use:   "ceph-clients",
		Short: "Tell the controller who has Ceph volumes open, by running rbd and ceph",
		Args:  cobra.NoArgs,
	}
	o.Setup(cmd, func(ctx context.Context, log *slog.Logger) error {
		if copyTo != "" {
			program, err := os.ReadFile("/proc/self/exe")
			if err == nil {
				err = os.WriteFile(copyTo, program, 0o755) //nolint:gosec // another user runs it
			}
			return err
		}
		listener, err := net.Listen("tcp", listen)
		if err != nil {
			return fmt.Errorf("listening: %w", err)
		}
		return httpserver.New("ceph-clients", listener, cephclients.ServerTLS(certificates), server.Handler(server.Local), log).Start(ctx)
	})
	cmd.Flags().StringVar(&listen, "listen", ":9445", "address to serve on")
	cmd.Flags().StringVar(&certificates, "certificates", cephClientsCertificates, "directory of tls.crt, tls.key and ca.crt; only the controller's certificate of that CA is admitted")
	cmd.Flags().StringVar(&copyTo, "copy-to", "", "only copy this program to a file, for a container whose image has rbd and ceph")
	return cmd
}

// askCeph returns a function that asks Ceph for a node's clients; nil if cephClients is off.
func askCeph(c config.CephClients, live client.Reader, held *fencingreads.Holdings) fencingreads.AskStorage {
	if c.Mode == config.Off {
		return nil
	}
	return cephclients.Reporter{ClusterID: c.ClusterID, Live: live, Held: held, Ask: cephclients.WithPause(cephclients.Ask(c.URL, cephClientsCertificates), clock.RealClock{})}.Report
}

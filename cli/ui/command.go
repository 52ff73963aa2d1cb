// Package ui is `fairlead ui`: a page on the loopback address that shows what the other commands print.
// The page only reads, with the rights of the user; it shows a change as the command to type.
package ui

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/internal/httpserver"
)

// interval between two readings, while a page is open.
const interval = 2 * time.Second

// Command is `fairlead ui`.
func Command() *cobra.Command {
	o := &cli.ClientOptions{}
	port := 0
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show the cluster on a local web page: data paths, settings, plans, roll-outs, fences, NFS services",
		Long: `Show the cluster on a local web page: the data path of each RWX volume, settings that
are not applied and why, plans, roll-outs, fences and NFS services.

The page is served on a loopback address, to the browser that opens the printed link
first. It reads the cluster with your kubeconfig every two seconds while a page is open,
and changes nothing: a change is shown as the kubectl command to copy. ClusterRole
fairlead-planner allows the reads; fairlead-fence-viewer and fairlead-nfs-viewer allow
the parts on nodes and NFS services. Ctrl-C ends the page.`,
		Example: "  fairlead ui\n  fairlead ui --context production\n  fairlead ui --port 8400",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			target, unread, err := o.OpenAll(cmd)
			if err != nil {
				return err
			}
			shared := newWatch(clusterSource{target, cli.Defaults(unread)})
			if s := shared.refresh(cmd.Context()); s.err != nil {
				return s.err
			}
			listener, err := listen(port)
			if err != nil {
				return err
			}
			page, err := newServer(listener.Addr().String(), shared, cli.Program(cmd), o.ClusterName())
			if err != nil {
				return err
			}
			out := o.Out(cmd)
			fmt.Fprintln(out)
			cli.WriteLine(out, "Open %s", page.link())
			fmt.Fprintln(out, "The link works once, in one browser. Ctrl-C ends the page.")
			return serve(cmd.Context(), listener, page)
		},
	}
	o.Setup(cmd)
	cmd.Flags().IntVar(&port, "port", 0, "port on the loopback address; by default any free port")
	_ = cmd.PersistentFlags().MarkHidden("output") // there is one form of output
	return cmd
}

// listen on a loopback address only.
func listen(port int) (net.Listener, error) {
	var failed error
	for _, host := range []string{"127.0.0.1", "::1"} { // some machines have IPv6 only
		listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err == nil {
			return listener, nil
		}
		failed = errors.Join(failed, err)
	}
	if errors.Is(failed, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("port %d of the loopback address is in use: give another one by --port, or none for any free port", port)
	}
	return nil, fmt.Errorf("listening on the loopback address: %w", failed)
}

// serve until the context ends.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	if err := httpserver.New("page", listener, nil, handler, slog.New(slog.DiscardHandler)).Start(ctx); err != nil {
		return fmt.Errorf("serving the page: %w", err)
	}
	return nil
}

// endpoint is a CSI driver as csi-addons' sidecar sees it: its identity, and
// fencing on a block list. The list is a file that the drivers of a storage share,
// as RBD and CephFS share that of their Ceph cluster; what it is asked, and how it
// checks that, follows ceph-csi.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"

	"github.com/csi-addons/spec/lib/go/fence"
	"github.com/csi-addons/spec/lib/go/identity"
	"google.golang.org/grpc"
)

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func serve() error {
	socket := flag.String("socket", "", "unix socket to listen on")
	driver := flag.String("driver", "", "name of the CSI driver")
	node := flag.String("node", "", "node it is on")
	controller := flag.Bool("controller", false, "fence, instead of telling which clients are on the node")
	client := flag.String("client", "", "id of the client on this node; Ceph's is the fsid of the cluster")
	cidrs := flag.String("cidrs", "", "addresses of the client on this node, comma-separated CIDRs")
	blockList := flag.String("block-list", "", "file of the block list, shared by drivers")
	fenceCommand := flag.String("fence", "", "program and arguments that carry out a fence; it gets the CIDRs as further arguments")
	unfenceCommand := flag.String("unfence", "", "the same for an unfence")
	control := flag.String("control", "", `file that makes calls fail or wait, read at each: {"fail":{"fence":"text"},"delay":{"unfence":"2s"}}`)
	calls := flag.String("calls", "", "file that calls are written to")
	flag.Parse()
	if *socket == "" || *driver == "" || *blockList == "" {
		return errors.New("--socket, --driver and --block-list are needed")
	}
	addresses, err := blocks(split(*cidrs))
	if err != nil {
		return err
	}
	if err := os.Remove(*socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the socket of an earlier run: %w", err)
	}
	listener, err := net.Listen("unix", *socket)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(
		journal{file: *calls, driver: *driver, node: *node}.record,
		obey(*control),
	))
	identity.RegisterIdentityServer(server, identityServer{driver: *driver, controller: *controller})
	fence.RegisterFenceControllerServer(server, fenceServer{
		list: list(*blockList), fence: command(*fenceCommand), unfence: command(*unfenceCommand), client: *client, addresses: addresses,
	})
	return server.Serve(listener)
}

func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

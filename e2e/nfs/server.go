package nfs

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fairlead-io/fairlead/e2e/machine"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// Every server exports two folders.
const (
	Export = "/export"
	Second = "/second"
)

// nfsPort of all servers.
const nfsPort = 2049

// Server is a real NFS server, a process of its own (github.com/willscott/go-nfs,
// NFSv3). All servers of a cluster share one folder, as those of a cluster file
// system do, and know each other's file handles.
type Server struct {
	Address netip.Addr
	// Export in place of the constant, from the next Start on.
	Export string

	cluster *Cluster
	process *sandbox.Replica
}

// StartServer starts a server and waits until it answers.
func (c *Cluster) StartServer(ctx context.Context, address netip.Addr) (*Server, error) {
	s := &Server{Address: address, Export: Export, cluster: c}
	return s, s.Start(ctx)
}

// Start starts the process, again if it was killed.
func (s *Server) Start(ctx context.Context) error {
	listen := netip.AddrPortFrom(s.Address, nfsPort).String()
	second := s.cluster.Folder(Second)
	for _, folder := range []string{s.cluster.Share, second} {
		if err := os.MkdirAll(folder, 0o777); err != nil {
			return fmt.Errorf("making the share: %w", err)
		}
	}
	var err error
	s.process, err = s.cluster.StartProcess("nfs-server-"+s.Address.String(), filepath.Join(s.cluster.Dir, "nfs-server-"+s.Address.String()+".log"), s.cluster.serverBinary,
		[]string{"-listen=" + listen, "-folder=" + s.cluster.Share, "-export=" + s.Export, "-also=" + Second + "=" + second}, nil)
	if err != nil {
		return err
	}
	return s.process.Until(ctx, 20*time.Second, func() error {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", listen)
		if err != nil {
			return err
		}
		return connection.Close()
	})
}

// Folder that a share of the servers is.
func (c *Cluster) Folder(share string) string {
	if share == Export {
		return c.Share
	}
	return c.Share + "-" + share[1:]
}

// Kill ends the server at once: its connections are closed.
func (s *Server) Kill() error { return s.process.Kill() }

// Hang stops the process: the kernel accepts connections, and nothing answers.
func (s *Server) Hang() error { return machine.Pause(s.process.Pid()) }

// Resume ends Hang.
func (s *Server) Resume() error { return syscall.Kill(s.process.Pid(), syscall.SIGCONT) }

// Package csinode mounts NFS shares for real through the CSI node plugin: mount(8), an
// NFS client in FUSE, and NFS servers that hang, die and come back. It needs root and
// runs in a machine of its own (see the package machine), without a control plane.
package csinode

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/fairlead-io/fairlead/e2e/machine"
	"github.com/fairlead-io/fairlead/internal/csi/mounts"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

const (
	driver     = "nfs.fairlead.io"
	kubeletDir = "/var/lib/kubelet"
)

// network is where NFS servers listen.
var network = netip.MustParsePrefix("10.77.0.0/16")

func TestMain(m *testing.M) {
	if why := machine.Unavailable(); why != "" {
		fmt.Fprintln(os.Stderr, "SKIPPED: the CSI node plugin does not mount for real here:", why)
		os.Exit(0)
	}
	for _, name := range []string{"nfsmount", "nfsserver"} {
		if _, err := os.Stat(program(name)); err != nil {
			fmt.Fprintln(os.Stderr, "SKIPPED: the CSI node plugin does not mount for real here: make", program(name))
			os.Exit(0)
		}
	}
	// /run has libblkid's cache, from which ganesha has the volume's UUID.
	os.Exit(machine.Run(machine.Spec{
		Addresses: []netip.Prefix{network}, Folders: []string{"/var/lib", "/run"}, Added: map[string]string{"/sbin/mount.nfs": program("nfsmount")},
	}, m.Run))
}

// program of the folder bin, where make builds it.
func program(name string) string {
	path, err := filepath.Abs("../../bin/" + name)
	if err != nil {
		panic(err)
	}
	return path
}

// server is an NFS server of its own process.
type server struct {
	*exec.Cmd
	address, folder string
}

var servers int

func newServer(t *testing.T) *server {
	servers++
	s := &server{address: fmt.Sprintf("10.77.0.%d", servers), folder: t.TempDir()}
	must.Do(t, os.Chmod(s.folder, 0o777))
	s.start(t)
	t.Cleanup(s.kill)
	return s
}

func (s *server) start(t *testing.T) {
	s.Cmd = exec.Command(program("nfsserver"), "-listen="+s.address+":2049", "-folder="+s.folder, "-export=/export")
	s.Stderr = os.Stderr
	must.Do(t, s.Start())
	wait(t, "the server", func() bool {
		c, err := net.Dial("tcp", s.address+":2049")
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

func (s *server) kill() {
	s.Process.Kill()
	s.Wait()
}

func (s *server) signal(t *testing.T, sig syscall.Signal) {
	must.Do(t, s.Process.Signal(sig))
}

// plugin is a process of fairlead csi-node.
type plugin struct {
	*exec.Cmd
	csi.NodeClient
	t    *testing.T
	args []string
}

func newPlugin(t *testing.T, args ...string) *plugin {
	p := &plugin{t: t, args: args}
	p.start()
	t.Cleanup(func() { p.end(syscall.SIGTERM) })
	return p
}

func (p *plugin) start() {
	p.Cmd = exec.Command(fairlead, append([]string{"csi-node", "--conntrack=false", "--log-format=text", "--log-level=debug"}, p.args...)...)
	p.Env = append(os.Environ(), "NODE_NAME=node-1", "KUBECONFIG=/none")
	p.Stderr = p.t.Output()
	must.Do(p.t, p.Start())
	conn, err := grpc.NewClient("unix://"+kubeletDir+"/plugins/"+driver+"/csi.sock", grpc.WithTransportCredentials(insecure.NewCredentials()))
	must.Do(p.t, err)
	p.t.Cleanup(func() { conn.Close() })
	p.NodeClient = csi.NewNodeClient(conn)
	if _, err := p.NodeGetInfo(context.Background(), &csi.NodeGetInfoRequest{}, grpc.WaitForReady(true)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *plugin) end(sig syscall.Signal) {
	p.Process.Signal(sig)
	p.Wait()
}

func target(name string) string {
	return filepath.Join(kubeletDir, "pods", name, "volumes/kubernetes.io~csi/pv/mount")
}

// publish mounts the server's share for a pod, as the kubelet asks for it.
func (p *plugin) publish(s *server, pod string, options ...string) error {
	path := target(pod)
	must.Do(p.t, os.MkdirAll(filepath.Dir(path), 0o750))
	_, err := p.NodePublishVolume(context.Background(), &csi.NodePublishVolumeRequest{
		VolumeId: "v-" + s.address, TargetPath: path, VolumeContext: map[string]string{"share": "/export"},
		PublishContext: map[string]string{driver + "/assigned-ip": s.address},
		VolumeCapability: &csi.VolumeCapability{
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{MountFlags: append([]string{"vers=3"}, options...)}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER},
		},
	}, grpc.WaitForReady(true))
	return err
}

func (p *plugin) unpublish(pod string) error {
	_, err := p.NodeUnpublishVolume(context.Background(), &csi.NodeUnpublishVolumeRequest{VolumeId: "v", TargetPath: target(pod)}, grpc.WaitForReady(true))
	return err
}

func (p *plugin) stats(pod string) (*csi.NodeGetVolumeStatsResponse, error) {
	return p.NodeGetVolumeStats(context.Background(), &csi.NodeGetVolumeStatsRequest{VolumeId: "v", VolumePath: target(pod)})
}

func (p *plugin) must(err error) {
	p.t.Helper()
	must.Do(p.t, err)
}

// mounted lists the NFS mounts of the machine.
func mounted(t *testing.T) (list []mounts.Mount) {
	all, err := (&mounts.Host{}).Mounts()
	must.Do(t, err)
	for _, m := range all {
		if m.IsNFS() {
			list = append(list, m)
		}
	}
	return list
}

// nothing asserts that no mount and no target is left.
func nothing(t *testing.T, pod string) {
	t.Helper()
	if list := mounted(t); len(list) > 0 {
		t.Errorf("still mounted: %v", list)
	}
	if _, err := os.Lstat(target(pod)); err == nil {
		t.Errorf("%s is left", target(pod))
	}
}

func wait(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain for ", what)
		}
	}
}

// daemons are the processes that make or serve the mounts of a server.
func daemons(t *testing.T, s *server) (pids []int) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must.Do(t, err)
	for _, file := range files {
		text, _ := os.ReadFile(file) // the process may have ended
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && strings.Contains(string(text), "\x00"+s.address+":/export\x00") {
			pids = append(pids, pid)
		}
	}
	return pids
}

//go:build linux

package nodes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// Node is a set of namespaces with a first process of its own.
type Node struct {
	Name string
	// Dir has the node's folders.
	Dir string
	// Address on the management network.
	Address string

	number  int
	cluster *Cluster
	mu      sync.Mutex
	init    *exec.Cmd
	ended   chan struct{}
}

// namespaces of a node. Pods run in the node's pid namespace or below, so the node sees their processes.
const namespaces = syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS

// Boot starts the node. Each boot has an ID of its own.
func (n *Node) Boot(ctx context.Context) error {
	description, err := n.describe()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(n.Log("init"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	init := exec.Command(n.cluster.programs.NodeInit)
	init.Stdout, init.Stderr = log, log
	init.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces, Setpgid: true}
	stdin, err := init.StdinPipe()
	if err != nil {
		return err
	}
	if err := init.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", n.Name, err)
	}
	ended := make(chan struct{})
	go func() { _ = init.Wait(); close(ended) }()
	n.mu.Lock()
	n.init, n.ended = init, ended
	n.mu.Unlock()
	if err := n.plug(ctx, init.Process.Pid); err != nil {
		return err
	}
	if _, err := io.Copy(stdin, bytes.NewReader(description)); err != nil {
		return fmt.Errorf("starting %s: %w", n.Name, err)
	}
	return stdin.Close()
}

// PowerOff ends everything on the node at once. Its folders stay.
func (n *Node) PowerOff() error {
	n.mu.Lock()
	init, ended := n.init, n.ended
	n.init = nil
	n.mu.Unlock()
	if init == nil {
		return nil
	}
	n.dropDevices(init.Process.Pid)
	if err := init.Process.Kill(); err != nil {
		return fmt.Errorf("powering off %s: %w", n.Name, err)
	}
	<-ended
	// The next kubelet would ask containerd for seconds about each cgroup that is left.
	return removeCgroups(n.cgroup())
}

func (n *Node) cgroup() string { return filepath.Join(n.cluster.cgroup, n.Name) }

// dropDevices fails all I/O on the node's volumes. A killed engine that is the last to have its volume mounted would wait
// for itself to write the volume back.
func (n *Node) dropDevices(pid int) {
	_, err := run(context.Background(), "nsenter", "-t", fmt.Sprint(pid), "-m", "sh", "-c", "set -- "+devices+"/*\n"+abortConnections)
	if err != nil {
		fmt.Fprintf(n.cluster.Out, "dropping the devices of %s: %v\n", n.Name, err)
	}
}

// Pid of the node's first process.
func (n *Node) Pid() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.init.Process.Pid
}

// Log is the file for the output of one of the node's services.
func (n *Node) Log(service string) string { return filepath.Join(n.Dir, "log", service+".log") }

// Run runs a program on the node and returns what it prints.
func (n *Node) Run(ctx context.Context, command ...string) (string, error) {
	return run(ctx, "nsenter", append([]string{"-t", fmt.Sprint(n.Pid()), "-m", "-n", "-p", "-u", "-i", "--"}, command...)...)
}

func run(ctx context.Context, name string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return string(out), nil
}

// description is what nodeinit reads.
type description struct {
	Name           string
	Folders, Files map[string]string
	Empty          []string
	Commands       [][]string
	Services       []service
	Logs           string
}

type service struct {
	Name    string
	Command []string
}

// keptFolders of a node survive its reboot.
var keptFolders = []string{"/var/lib/kubelet", "/var/lib/containerd", "/var/lib/cni", "/var/lib/longhorn", "/var/log"}

// kernelFiles are written by a kubelet and belong to the machine: the node gets copies.
var kernelFiles = []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"}

func (n *Node) describe() ([]byte, error) {
	d := description{Name: n.Name, Folders: map[string]string{}, Files: map[string]string{}, Logs: filepath.Join(n.Dir, "log")}
	d.Empty = []string{"/run", devices}
	for _, at := range keptFolders {
		d.Folders[at] = filepath.Join(n.Dir, "disk", at)
	}
	d.Folders[sharedLedger] = filepath.Join(n.cluster.Dir, "addresses")
	d.Folders[sharedFolder] = n.cluster.SharedFolder()
	d.Folders[fencingSockets] = n.fencingFolder()
	for _, folder := range d.Folders {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(d.Logs, 0o755); err != nil {
		return nil, err
	}
	texts := map[string]string{"/proc/sys/kernel/random/boot_id": string(uuid.NewUUID()) + "\n", "/etc/machine-id": strings.Repeat(fmt.Sprint(n.number), 32) + "\n"}
	for _, name := range kernelFiles {
		at := "/proc/sys/" + name
		content, err := os.ReadFile(at)
		if err != nil {
			return nil, err
		}
		texts[at] = string(content)
	}
	for at, text := range texts {
		file := filepath.Join(n.Dir, "files", strings.ReplaceAll(at, "/", "_"))
		if err := writeFile(file, text); err != nil {
			return nil, err
		}
		d.Files[at] = file
	}
	services, err := n.services()
	if err != nil {
		return nil, err
	}
	d.Services = services
	d.Commands = n.linkCommands()
	return json.Marshal(d)
}

func writeFile(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

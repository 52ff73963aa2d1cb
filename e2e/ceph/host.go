package ceph

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Host looks like a machine of its own to Ceph: it has an address, a name and a cable. Daemons connect from the address
// of their host, so that each can be blocked alone.
type Host struct {
	Name    string
	Address netip.Addr
	link    string // the other end of the cable, at the switch
	dir     string
}

const bridge = "switch"

// makeSwitch readies the network that all hosts are on.
func makeSwitch(ctx context.Context) error {
	return all(ctx,
		"mkdir -p /run/netns",
		"mount -t tmpfs none /run/netns", // names of namespaces are seen in here only
		"ip link set lo up",
		"ip link add "+bridge+" type bridge",
		"ip link set "+bridge+" up",
	)
}

// Join gives this process itself an address on the network of the hosts.
func (c *Cluster) Join(ctx context.Context, number int) error {
	address := hostPrefix(c.Admin.Address.Is6(), number).String()
	if c.Admin.Address.Is6() {
		address += " nodad"
	}
	return all(ctx, "ip addr add "+address+" dev "+bridge)
}

func makeHost(ctx context.Context, name string, address netip.Prefix, directory string) (*Host, error) {
	h := &Host{Name: name, Address: address.Addr(), link: "to-" + name, dir: directory}
	nodad := ""
	if address.Addr().Is6() {
		nodad = " nodad"
	}
	return h, all(ctx,
		"ip netns add "+name,
		"ip link add "+h.link+" type veth peer name eth0 netns "+name,
		"ip link set "+h.link+" master "+bridge+" up",
		"ip -n "+name+" addr add "+address.String()+" dev eth0"+nodad,
		"ip -n "+name+" link set eth0 up",
		"ip -n "+name+" link set lo up",
	)
}

func all(ctx context.Context, lines ...string) error {
	for _, line := range lines {
		words := strings.Fields(line)
		if _, err := output(exec.CommandContext(ctx, words[0], words[1:]...)); err != nil {
			return err
		}
	}
	return nil
}

// Unplug pulls the host's cable; neither end is notified.
func (h *Host) Unplug(ctx context.Context) error {
	return all(ctx, "ip link set "+h.link+" nomaster")
}

// Plug puts it in again.
func (h *Host) Plug(ctx context.Context) error {
	return all(ctx, "ip link set "+h.link+" master "+bridge)
}

// arguments of nsenter run a program on this host. The program keeps the mounts of this process, so that what a host has
// mounted can be looked at from here.
func (h *Host) arguments(name string, args ...string) []string {
	const named = `echo "$0" >/proc/sys/kernel/hostname && exec "$@"`
	return append([]string{"--net=/run/netns/" + h.Name, "unshare", "--uts", "sh", "-c", named, h.Name, name}, args...)
}

func (h *Host) environment() []string {
	return []string{"CEPH_CONF=" + filepath.Join(h.dir, "ceph.conf"), "CEPH_ARGS="}
}

// Run runs a program on this host to its end, and returns its standard output,
// also if it fails.
func (h *Host) Run(ctx context.Context, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "nsenter", h.arguments(name, args...)...)
	cmd.Env = append(os.Environ(), h.environment()...)
	cmd.WaitDelay = time.Second
	out, err := output(cmd)
	var failed *CommandError
	if errors.As(err, &failed) {
		failed.Command = h.Name + ": " + strings.Join(append([]string{name}, args...), " ")
	}
	return out, err
}

// output waits for a program.
func output(cmd *exec.Cmd) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.Bytes(), &CommandError{Command: strings.Join(cmd.Args, " "), Stderr: stderr.String(), Err: err}
	}
	return stdout.Bytes(), nil
}

// CommandError is a failed program with its output.
type CommandError struct {
	Command, Stderr string
	Err             error
}

func (e *CommandError) Error() string {
	return fmt.Sprintf("%s: %v: %s", e.Command, e.Err, lastLines(e.Stderr, 3))
}

func (e *CommandError) Unwrap() error { return e.Err }

func lastLines(text string, most int) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
	return strings.Join(lines[max(0, len(lines)-most):], "; ")
}

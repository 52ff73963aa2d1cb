//go:build linux

package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Networks of the cluster. The machine that runs the control plane is on the management network only.
const (
	// MachineAddress is that of the API server.
	MachineAddress = "10.99.0.1"
	managementMask = "/24"
	// podRange of a node: the n-th /24.
	podRange = "10.244.%d.0/24"
	allPods  = "10.244.0.0/16"
)

// Link of a node.
type Link string

// Links of a node: the management link is named eth0 on the node.
const (
	Management Link = "mgmt"
	Storage    Link = "stor"
)

// storageInterface is the master of the storage networks on a node.
const storageInterface = "stor0"

func (l Link) bridge() string { return string(l) + "-br" }

// port of the link in its bridge, in the machine.
func (l Link) port(n *Node) string { return fmt.Sprintf("%s-%d", l, n.number) }

func makeBridges(ctx context.Context) error {
	for _, command := range [][]string{
		{"link", "add", Management.bridge(), "type", "bridge"}, {"link", "add", Storage.bridge(), "type", "bridge"},
		{"link", "set", Management.bridge(), "up"}, {"link", "set", Storage.bridge(), "up"},
		{"addr", "add", MachineAddress + managementMask, "dev", Management.bridge()},
	} {
		if _, err := run(ctx, "ip", command...); err != nil {
			return err
		}
	}
	return nil
}

func removeBridges(ctx context.Context) error {
	_, one := run(ctx, "ip", "link", "del", Management.bridge())
	_, two := run(ctx, "ip", "link", "del", Storage.bridge())
	return errors.Join(one, two)
}

// plug connects the network of a process with the bridges.
func (n *Node) plug(ctx context.Context, pid int) error {
	for link, name := range map[Link]string{Management: "eth0", Storage: storageInterface} {
		port, state := link.port(n), "up"
		if _, err := os.Stat(n.cutFile(link)); err == nil {
			state = "down"
		}
		_, _ = run(ctx, "ip", "link", "del", port) // the port from before a power-off
		for _, command := range [][]string{
			{"link", "add", port, "type", "veth", "peer", "name", name, "netns", strconv.Itoa(pid)},
			{"link", "set", port, "master", link.bridge(), state},
		} {
			if _, err := run(ctx, "ip", command...); err != nil {
				return err
			}
		}
	}
	_, err := run(ctx, "ip", "route", "replace", fmt.Sprintf(podRange, n.number), "via", n.Address)
	return err
}

// linkCommands are run on the node.
func (n *Node) linkCommands() [][]string {
	commands := [][]string{
		{"ip", "link", "set", "lo", "up"},
		{"ip", "link", "set", storageInterface, "up"},
		{"ip", "link", "set", "eth0", "up"},
		{"ip", "addr", "add", n.Address + managementMask, "dev", "eth0"},
		{"ip", "route", "add", "default", "via", MachineAddress},
		{"sysctl", "-qw", "net.ipv4.ip_forward=1"},
	}
	for _, other := range n.cluster.Nodes {
		if other != n {
			commands = append(commands, []string{"ip", "route", "add", fmt.Sprintf(podRange, other.number), "via", other.Address})
		}
	}
	return commands
}

// cutFile exists while the link is cut, so that a reboot does not mend it.
func (n *Node) cutFile(link Link) string { return filepath.Join(n.Dir, "cut-"+string(link)) }

// Cut takes a link of the node down: what runs on the node goes on.
func (n *Node) Cut(ctx context.Context, link Link) error {
	if err := writeFile(n.cutFile(link), ""); err != nil {
		return err
	}
	_, err := run(ctx, "ip", "link", "set", link.port(n), "down")
	return err
}

// Mend takes a link up again.
func (n *Node) Mend(ctx context.Context, link Link) error {
	if err := os.RemoveAll(n.cutFile(link)); err != nil {
		return err
	}
	_, err := run(ctx, "ip", "link", "set", link.port(n), "up")
	return err
}

// Bytes that a link of the node has carried, both ways together.
func (n *Node) Bytes(link Link) (int64, error) {
	// /sys shows the network in which it was mounted.
	counters, err := os.ReadFile("/proc/self/net/dev")
	if err != nil {
		return 0, err
	}
	return bytesOf(string(counters), link.port(n))
}

// bytesOf a device in /proc/net/dev, as proc_pid_net(5) has it: received is its first column, sent the ninth.
func bytesOf(counters, device string) (total int64, _ error) {
	for line := range strings.Lines(counters) {
		name, values, _ := strings.Cut(line, ":")
		if strings.TrimSpace(name) != device {
			continue
		}
		columns := strings.Fields(values)
		for _, column := range []string{columns[0], columns[8]} {
			value, err := strconv.ParseInt(column, 10, 64)
			if err != nil {
				return 0, err
			}
			total += value
		}
		return total, nil
	}
	return 0, fmt.Errorf("there is no device %s", device)
}

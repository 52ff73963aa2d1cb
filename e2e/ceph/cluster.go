package ceph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/fairlead-io/fairlead/internal/cephclients/cephcli"
)

type daemon struct{ kind, id, host, caps string }

func (d daemon) name() string { return d.kind + "." + d.id }

// daemons in the order of their start, the monitor first.
var daemons = []daemon{
	{"mon", "a", monHost, ""},
	{"mgr", "x", mgrHost, "mon,allow profile mgr,osd,allow *,mds,allow *"},
	{"osd", "0", osd0Host, "mon,allow profile osd,osd,allow *,mgr,allow profile osd"},
	{"osd", "1", osd1Host, "mon,allow profile osd,osd,allow *,mgr,allow profile osd"},
	{"mds", "a", mdsAHost, "mon,allow profile mds,osd,allow *,mds,allow *,mgr,allow profile mds"},
	{"mds", "b", mdsBHost, "mon,allow profile mds,osd,allow *,mds,allow *,mgr,allow profile mds"},
}

// Cluster is a Ceph that runs.
type Cluster struct {
	Directory    string
	Admin        *Host // where commands are given
	Node1, Node2 *Host // clients

	hosts   map[string]*Host
	running map[string]*Process
}

// Start starts a Ceph and returns when it takes writes. Inside ends it.
func Start(ctx context.Context, directory string, ipv6 bool, report func(string)) (*Cluster, error) {
	c := &Cluster{Directory: directory, hosts: map[string]*Host{}, running: map[string]*Process{}}
	if err := makeSwitch(ctx); err != nil {
		return nil, err
	}
	for name, number := range hostNumbers {
		host, err := makeHost(ctx, name, hostPrefix(ipv6, number), directory)
		if err != nil {
			return nil, err
		}
		c.hosts[name] = host
	}
	c.Admin, c.Node1, c.Node2 = c.hosts[adminHost], c.hosts[node1Host], c.hosts[node2Host]
	fsid := uuid()
	if err := c.writeConfig(ctx, fsid); err != nil {
		return nil, err
	}
	for _, d := range daemons {
		if err := c.create(ctx, d); err != nil {
			return nil, fmt.Errorf("%s: %w", d.name(), err)
		}
		if err := c.StartDaemon(d.name()); err != nil {
			return nil, err
		}
	}
	report("daemons started: " + c.Version(ctx))
	if err := c.WaitOSDs(ctx, 2); err != nil {
		return nil, err
	}
	report("both OSDs are up")
	steps := [][]string{
		{"osd", "pool", "create", rbdPool, "8"},
		{"osd", "pool", "create", metaPool, "8"},
		{"osd", "pool", "create", dataPool, "8"},
		{"osd", "pool", "application", "enable", rbdPool, "rbd"},
		{"fs", "new", fileSystem, metaPool, dataPool},
	}
	for _, args := range steps {
		if _, err := c.Ceph(ctx, args...); err != nil {
			return nil, err
		}
	}
	if err := c.WaitFileSystem(ctx); err != nil {
		return nil, err
	}
	report("the file system is active")
	return c, nil
}

// create writes what a daemon starts from.
func (c *Cluster) create(ctx context.Context, d daemon) error {
	host, data := c.hosts[d.host], filepath.Join(c.Directory, d.name())
	if err := os.MkdirAll(data, 0o755); err != nil {
		return err
	}
	switch d.kind {
	case "mon":
		_, err := host.Run(ctx, "ceph-mon", "--mkfs", "-i", d.id, "--monmap", filepath.Join(c.Directory, "monmap"),
			"--keyring", filepath.Join(c.Directory, "keyring"))
		return err
	case "osd":
		id := uuid()
		if _, err := c.Ceph(ctx, "osd", "new", id); err != nil {
			return err
		}
		_, err := host.Run(ctx, "ceph-osd", "--mkfs", "-i", d.id, "--osd-uuid", id)
		return err
	}
	return nil
}

func find(name string) (daemon, error) {
	for _, d := range daemons {
		if d.name() == name {
			return d, nil
		}
	}
	return daemon{}, fmt.Errorf("there is no daemon %q", name)
}

// StartDaemon starts a daemon, for example osd.0, in the foreground.
func (c *Cluster) StartDaemon(name string) error {
	d, err := find(name)
	if err != nil {
		return err
	}
	process, err := c.hosts[d.host].Start(name, "ceph-"+d.kind, "-f", "-i", d.id)
	c.running[name] = process
	return err
}

// Daemon is a daemon's process, and Host where it is.
func (c *Cluster) Daemon(name string) *Process { return c.running[name] }

// Host is where a daemon runs.
func (c *Cluster) Host(name string) *Host {
	d, err := find(name)
	if err != nil {
		return nil
	}
	return c.hosts[d.host]
}

// Log is the file that a daemon logs to.
func (c *Cluster) Log(name string) string { return filepath.Join(c.Directory, "log", name+".log") }

// commandTime is the longest that a command may take: ceph waits for a monitor
// or a manager that isn't there without an end.
const commandTime = 30 * time.Second

// Ceph runs the ceph command as administrator.
func (c *Cluster) Ceph(ctx context.Context, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	return c.Admin.Run(ctx, "ceph", args...)
}

// RBD runs the rbd command as administrator.
func (c *Cluster) RBD(ctx context.Context, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	return c.Admin.Run(ctx, "rbd", args...)
}

// Version is what the tools call themselves.
func (c *Cluster) Version(ctx context.Context) string {
	out, err := c.Ceph(ctx, "--version")
	if err != nil {
		return err.Error()
	}
	return lastLines(string(out), 1)
}

// Wait asks until something is so, several times a second.
func Wait(ctx context.Context, most time.Duration, what string, so func() (bool, error)) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, most, true, func(context.Context) (ok bool, _ error) {
		ok, last = so()
		return ok && last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%s: not within %v: %w", what, most, errors.Join(last, err))
	}
	return nil
}

// OSDsUp is how many OSDs the monitor holds to be up.
func (c *Cluster) OSDsUp(ctx context.Context) (int, error) {
	out, err := c.Ceph(ctx, "osd", "stat", "--format", "json")
	if err != nil {
		return 0, err
	}
	var stat struct {
		Up int `json:"num_up_osds"`
	}
	return stat.Up, json.Unmarshal(out, &stat)
}

// WaitOSDs waits until so many OSDs are up.
func (c *Cluster) WaitOSDs(ctx context.Context, number int) error {
	return Wait(ctx, 2*time.Minute, fmt.Sprintf("%d OSDs up", number), func() (bool, error) {
		up, err := c.OSDsUp(ctx)
		return up == number, err
	})
}

// MDSs and their ranks.
func (c *Cluster) MDSs(ctx context.Context) (cephcli.MDSs, error) {
	out, err := c.Ceph(ctx, cephcli.MDSStatArgs()...)
	if err != nil {
		return cephcli.MDSs{}, err
	}
	return cephcli.ParseMDSStat(out)
}

// ActiveMDS serves the first rank of the file system; "" if none does.
func (c *Cluster) ActiveMDS(ctx context.Context) (string, error) {
	out, err := c.Ceph(ctx, cephcli.MDSStatArgs()...)
	if err != nil {
		return "", err
	}
	var stat struct {
		FSMap struct {
			FileSystems []struct {
				MDSMap struct {
					Info map[string]struct {
						Name, State string
						Rank        int
					}
				}
			}
		}
	}
	if err := json.Unmarshal(out, &stat); err != nil {
		return "", err
	}
	for _, fs := range stat.FSMap.FileSystems {
		for _, mds := range fs.MDSMap.Info {
			if mds.State == "up:active" && mds.Rank == 0 {
				return mds.Name, nil
			}
		}
	}
	return "", nil
}

// WaitFileSystem waits until the file system is served.
func (c *Cluster) WaitFileSystem(ctx context.Context) error {
	return Wait(ctx, 2*time.Minute, "the file system to be active", func() (bool, error) {
		name, err := c.ActiveMDS(ctx)
		return name != "", err
	})
}

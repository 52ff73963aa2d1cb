package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// CSIAddonsOptions say which drivers there are.
type CSIAddonsOptions struct {
	// Namespace of the drivers' pods; empty is Rook's.
	Namespace string
	Drivers   []CSIAddonsDriver
}

// CSIAddonsDriver is a CSI driver that can fence.
type CSIAddonsDriver struct {
	// Name of the driver.
	Name string
	// Client is the id that the driver gives its clients in
	// networkFenceClientStatus: Ceph's is the fsid of the cluster. Empty is ClusterID.
	Client string
	// ClusterID is the storage that Client belongs to, the parameter of classes and
	// fences. Drivers of one storage share its block list.
	ClusterID string
	// Nodes have a plugin of the driver, whose client has these addresses, as CIDRs.
	Nodes map[string][]string
	// ControllerNode is where the one that fences runs; empty is where it is scheduled.
	ControllerNode string
}

// CSIAddons is csi-addons' own manager and, for each plugin of a driver, its own
// sidecar beside an endpoint of ours in place of ceph-csi's. The plugins' pods are
// simulated as all pods are; but their address is this machine's, where the
// sidecars listen. There is no TLS and no token between manager and sidecars.
//
// The build changes two things in the sidecar's main: it finds the API server by its own flag --kubeconfig, and listens
// on the loopback. pods/sidecar is unchanged, for real nodes.
//
// The endpoint (e2e/csiaddons/endpoint) is a controller, which fences, or a plugin on a node, which reports its clients.
// The block list is a file for each clusterID. It refuses what ceph-csi refuses: no secret, no clusterID, and what isn't
// a CIDR. With --fence and --unfence it calls a program with the CIDRs, which cuts a real link; if the program fails, so
// does the call, and the block list stays as it is.
type CSIAddons struct {
	// Namespace of the drivers' pods, and of their CSIAddonsNodes and leases.
	Namespace string
	// Dir has the logs.
	Dir string

	sandbox  *Sandbox
	binaries string
	sockets  string // paths of sockets are short
	manager  *Replica
	plugins  []*csiPlugin
	drivers  []CSIAddonsDriver
}

// StartCSIAddons installs csi-addons' CRDs, starts its manager and the drivers, and
// waits until the manager is connected to all of them and every driver has the
// one that fences. It ends with the sandbox.
func (s *Sandbox) StartCSIAddons(ctx context.Context, o CSIAddonsOptions) (*CSIAddons, error) {
	if o.Namespace == "" {
		o.Namespace = "rook-ceph"
	}
	binaries, err := s.Ensure(ctx, "csiaddons")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(s.Dir, "csiaddons-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for csi-addons: %w", err)
	}
	sockets, err := os.MkdirTemp("", "csiaddons-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for sockets: %w", err)
	}
	a := &CSIAddons{Namespace: o.Namespace, Dir: dir, sandbox: s, binaries: binaries, sockets: sockets, drivers: o.Drivers}
	s.csiAddons = append(s.csiAddons, a) // from here on, Stop ends it
	if err := a.install(ctx); err != nil {
		return nil, err
	}
	if err := a.StartManager(ctx); err != nil {
		return nil, err
	}
	for _, d := range o.Drivers {
		if err := a.createDriver(ctx, d); err != nil {
			return nil, err
		}
	}
	if err := a.startPlugins(ctx, a.plugins); err != nil {
		return nil, err
	}
	return a, nil
}

// install applies csi-addons' own CRDs, all of them: its manager does not start without.
func (a *CSIAddons) install(ctx context.Context) error {
	crds := filepath.Join(a.binaries, "crds")
	if out, err := a.sandbox.Kubectl(ctx, "", "apply", "--server-side", "-f", crds); err != nil {
		return fmt.Errorf("installing csi-addons' CRDs: %w\n%s", err, out)
	}
	if out, err := a.sandbox.Kubectl(ctx, "", "wait", "--for=condition=Established", "--timeout=1m", "-f", crds); err != nil {
		return fmt.Errorf("waiting for csi-addons' CRDs: %w\n%s", err, out)
	}
	return a.sandbox.createNamespace(ctx, a.Namespace)
}

// StartManager starts csi-addons' manager and waits until it runs. It is used
// without TLS and tokens to the sidecars: all is on the loopback.
func (a *CSIAddons) StartManager(ctx context.Context) error {
	addresses, err := FreeAddresses(1)
	if err != nil {
		return err
	}
	r := newReplica("csi-addons-manager", filepath.Join(a.Dir, "manager.log"))
	r.OpsURL = "http://" + addresses[0]
	a.manager = r
	if err := r.start(filepath.Join(a.binaries, "manager"), []string{
		"--kubeconfig=" + a.sandbox.State.Kubeconfig, "--enable-auth=false", "--health-probe-bind-address=" + addresses[0],
	}, nil); err != nil {
		a.manager = nil
		return err
	}
	return r.WaitReady(ctx)
}

// StopManager ends csi-addons' manager at once.
func (a *CSIAddons) StopManager() error {
	if a.manager == nil {
		return nil
	}
	return a.manager.Kill()
}

// Stop ends all of it, at once.
func (a *CSIAddons) Stop() error {
	problems := []error{a.StopManager()}
	for _, p := range a.plugins {
		problems = append(problems, p.stop())
	}
	return errors.Join(append(problems, os.RemoveAll(a.sockets))...)
}

func (a *CSIAddons) blockList() string { return filepath.Join(a.Dir, "blocklist.json") }

// Blocked are the CIDRs that a storage refuses, in order.
func (a *CSIAddons) Blocked(clusterID string) ([]string, error) {
	data, err := os.ReadFile(a.blockList())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the block list: %w", err)
	}
	var all map[string][]string
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("reading the block list: %w", err)
	}
	return all[clusterID], nil
}

func (a *CSIAddons) calls() string { return filepath.Join(a.Dir, "calls") }

// Calls are what the drivers were asked, a line for each call when it has ended:
// when it came, driver, node, what about, and what came of it after how long.
func (a *CSIAddons) Calls() (string, error) {
	data, err := os.ReadFile(a.calls())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("reading what the drivers were asked: %w", err)
	}
	return string(data), nil
}

// Logs are those of the manager, the sidecars and the endpoints, by name.
func (a *CSIAddons) Logs() ([]string, error) {
	return filepath.Glob(filepath.Join(a.Dir, "*.log"))
}

// connectTimeout is what the lease of one that has ended needs to run out, and more.
const connectTimeout = 90 * time.Second

//go:build linux

package nodes

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

//go:embed fencing.yaml
var fencingManifest string

const (
	fencedDriver = "longhorn.rbd.csi.ceph.com"
	// fencedClass is the StorageClass, and fencedStorage its clusterID, in fencing.yaml.
	fencedClass   = "fenced-longhorn"
	fencedStorage = "longhorn"
	// fencingSockets is a folder of each node, and of the machine: the endpoints run there.
	fencingSockets = "/run/csi-addons"
)

// FencedStorage fences nodes: a fence takes the node's storage link down.
type FencedStorage struct {
	dir string
}

func (s FencedStorage) file(name string) string { return filepath.Join(s.dir, name) }

func (n *Node) fencingFolder() string { return filepath.Join(n.Dir, "csi-addons") }

// storageClient is the address by which the storage knows the node. No interface has the address.
func (n *Node) storageClient() string { return fmt.Sprintf("192.168.50.%d/32", 200+n.number) }

// InstallFencing installs csi-addons and a driver of Longhorn's volumes that can fence, after Longhorn.
func (c *Cluster) InstallFencing(ctx context.Context) (FencedStorage, error) {
	s := FencedStorage{dir: filepath.Join(c.Dir, "fencing")}
	folder, err := c.Ensure(ctx, "csiaddons")
	if err != nil {
		return s, err
	}
	if err := c.startEndpoints(ctx, s, filepath.Join(folder, "endpoint")); err != nil {
		return s, err
	}
	manager, err := csiAddonsManifest(folder)
	if err != nil {
		return s, err
	}
	if out, err := c.Kubectl(ctx, "", "apply", "--server-side", "-f", filepath.Join(folder, "crds")); err != nil {
		return s, fmt.Errorf("installing csi-addons' CRDs: %w\n%s", err, out)
	}
	if out, err := c.Kubectl(ctx, "", "wait", "--for=condition=Established", "--timeout=1m", "-f", filepath.Join(folder, "crds")); err != nil {
		return s, fmt.Errorf("waiting for csi-addons' CRDs: %w\n%s", err, out)
	}
	if out, err := c.Kubectl(ctx, manager+"---\n"+fencingManifest, "apply", "--server-side", "-f", "-"); err != nil {
		return s, fmt.Errorf("installing csi-addons: %w\n%s", err, out)
	}
	for namespace, name := range map[string]string{"csi-addons-system": "csi-addons-controller-manager", "rook-ceph": "fenced-longhorn-ctrlplugin"} {
		if err := c.WaitRolledOut(ctx, namespace, name); err != nil {
			return s, err
		}
	}
	return s, nil
}

// startEndpoints starts the endpoints that csi-addons' sidecars call. They end with ctx.
func (c *Cluster) startEndpoints(ctx context.Context, s FencedStorage, program string) error {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(s.file("storage"), []byte(s.program(c.Nodes)), 0o755); err != nil {
		return err
	}
	for _, n := range c.Nodes {
		for name, args := range map[string][]string{
			"controller": {"--controller", "--fence=" + s.file("storage") + " fence", "--unfence=" + s.file("storage") + " unfence"},
			"node":       {"--node=" + n.Name, "--client=" + fencedStorage, "--cidrs=" + n.storageClient()},
		} {
			if err := startProcess(ctx, program, n.Log("csi-addons-"+name), append(args, "--driver="+fencedDriver, "--block-list="+s.file("blocked"),
				"--calls="+s.file("calls"), "--socket="+filepath.Join(n.fencingFolder(), name+".sock"))...); err != nil {
				return err
			}
		}
	}
	return nil
}

func startProcess(ctx context.Context, program, log string, args ...string) error {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	command := exec.CommandContext(ctx, program, args...)
	command.Stdout, command.Stderr = out, out
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", program, err)
	}
	go func() { _ = command.Wait() }()
	return nil
}

// program of the storage cuts and mends links as Cut and Mend do. A fence waits while the file "slow" exists.
func (s FencedStorage) program(nodes []*Node) string {
	var links strings.Builder
	for _, n := range nodes {
		fmt.Fprintf(&links, "\t%s) port=%s cut=%s ;;\n", n.storageClient(), Storage.port(n), n.cutFile(Storage))
	}
	return fmt.Sprintf(`#!/bin/sh -e
action=$1
shift
for address; do
	case $address in
%s	*) echo "no node has $address"; exit 1 ;;
	esac
	if [ "$action" = fence ]; then
		while [ -e %s ]; do sleep 0.1; done
		touch "$cut"
		ip link set "$port" down
	else
		rm -f "$cut"
		ip link set "$port" up
	fi
done
`, links.String(), s.file("slow"))
}

// Slow makes fences wait until Quick.
func (s FencedStorage) Slow() error { return writeFile(s.file("slow"), "") }

// Quick lets fences through.
func (s FencedStorage) Quick() error { return os.Remove(s.file("slow")) }

// Blocked are the addresses that the storage refuses.
func (s FencedStorage) Blocked() ([]string, error) {
	data, err := os.ReadFile(s.file("blocked"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all map[string][]string
	err = json.Unmarshal(data, &all)
	return all[fencedStorage], err
}

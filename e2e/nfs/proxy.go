package nfs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// NoProxy says why kube-proxy cannot run here; it is empty where it can.
func NoProxy() string {
	for _, program := range []string{"nft", "conntrack"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Sprintf("needs the program %s (Debian: apt install nftables conntrack)", program)
		}
	}
	return ""
}

const proxyHealth = "127.0.0.1:10256"

// StartProxy starts the real kube-proxy of one node and waits until it has written its rules.
func (c *Cluster) StartProxy(ctx context.Context, node string) error {
	proxy, err := binary("KUBE_PROXY_BINARY", "kube-proxy", c.Root)
	if err != nil {
		return err
	}
	process, err := c.StartProcess("kube-proxy", filepath.Join(c.Dir, "kube-proxy.log"), proxy, []string{
		"--kubeconfig=" + c.State.Kubeconfig, "--proxy-mode=nftables", "--hostname-override=" + node,
		// The limits of the whole machine are not changed.
		"--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0",
		"--healthz-bind-address=" + proxyHealth, "--metrics-bind-address=127.0.0.1:10249",
	}, nil)
	if err != nil {
		return err
	}
	process.OpsURL = "http://" + proxyHealth
	return process.WaitHealthy(ctx, "/healthz")
}

// startProxyOnce starts kube-proxy for all tests of the cluster.
func (c *Cluster) startProxyOnce(ctx context.Context, node string) error {
	c.proxy.Do(func() { c.proxyErr = c.StartProxy(ctx, node) })
	return c.proxyErr
}

// binary is a program that make has built; the variable names another one.
func binary(variable, name, root string) (string, error) {
	path := os.Getenv(variable)
	if path == "" {
		path = filepath.Join(root, "bin", name)
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("there is no %s: run this by make e2e-nfs, or set %s: %w", name, variable, err)
	}
	return path, nil
}

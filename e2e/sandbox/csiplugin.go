package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// csiPlugin is a pod of a driver: an endpoint, and csi-addons' sidecar beside it.
type csiPlugin struct {
	driver CSIAddonsDriver
	// node it is on; empty is the one that fences, wherever its pod is.
	node string
	// socket is where the sidecar finds the endpoint.
	socket            string
	endpoint, sidecar *Replica
	// pod and object are the names of its pod and its CSIAddonsNode.
	pod, object string
}

func (p *csiPlugin) controller() bool { return p.node == "" }

func (p *csiPlugin) name() string {
	if p.controller() {
		return p.driver.Name + "-controller"
	}
	return p.driver.Name + "-" + p.node
}

// startPlugin runs what the plugin's pod would, under its name and at its address.
func (a *CSIAddons) startPlugin(ctx context.Context, p *csiPlugin) error {
	pod, err := a.waitPod(ctx, p)
	if err != nil {
		return err
	}
	addresses, err := FreeAddresses(1)
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(addresses[0])
	if err != nil {
		return fmt.Errorf("reading the address of %s: %w", p.name(), err)
	}
	err = a.sandbox.updatePodStatus(ctx, client.ObjectKeyFromObject(pod), func(pod *corev1.Pod) error {
		pod.Status.PodIP, pod.Status.PodIPs = host, []corev1.PodIP{{IP: host}}
		return nil
	})
	if err != nil {
		return err
	}
	if err := a.startEndpoint(ctx, p, pod.Spec.NodeName); err != nil {
		return err
	}
	if err := a.startSidecar(ctx, p, []string{
		"--kubeconfig=" + a.sandbox.State.Kubeconfig, "--enable-auth=false",
		"--csi-addons-address=unix://" + p.socket, "--controller-port=" + port, "--node-id=" + pod.Spec.NodeName,
		"--pod=" + pod.Name, "--namespace=" + pod.Namespace, "--pod-uid=" + string(pod.UID),
		"--leader-election-namespace=" + pod.Namespace,
	}); err != nil {
		return err
	}
	p.pod, p.object = pod.Name, csiAddonsNodeName(p, pod)
	return nil
}

// startSidecar starts the sidecar until it has written its CSIAddonsNode. If another write comes first, the sidecar ends after three
// minutes, and a kubelet starts it again (v0.14.0, sidecar/internal/csiaddonsnode: nodeCreationRetry, nodeCreationTimeout); here
// it is started again at once.
func (a *CSIAddons) startSidecar(ctx context.Context, p *csiPlugin, args []string) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	for {
		p.sidecar = newReplica("sidecar of "+p.name(), filepath.Join(a.Dir, p.name()+"-sidecar.log"))
		earlier, _ := os.ReadFile(p.sidecar.Log) // of earlier starts, if any
		if err := p.sidecar.start(filepath.Join(a.binaries, "sidecar"), args, nil); err != nil {
			p.sidecar = nil
			return err
		}
		refused := false
		err := p.sidecar.Until(ctx, connectTimeout, func() error {
			log, err := os.ReadFile(p.sidecar.Log)
			if err != nil {
				return err
			}
			log = bytes.TrimPrefix(log, earlier)
			if refused = bytes.Contains(log, []byte("failed to create CSIAddonsNode")); refused || bytes.Contains(log, []byte("Starting watcher for CSIAddonsNode")) {
				return nil
			}
			return errors.New("it has not written its CSIAddonsNode")
		})
		if err != nil || !refused {
			return err
		}
		if err := p.sidecar.Kill(); err != nil {
			return err
		}
	}
}

func (a *CSIAddons) startEndpoint(ctx context.Context, p *csiPlugin, node string) error {
	id := p.driver.Client
	if id == "" {
		id = p.driver.ClusterID
	}
	p.endpoint = newReplica("endpoint of "+p.name(), filepath.Join(a.Dir, p.name()+"-endpoint.log"))
	if err := p.endpoint.start(filepath.Join(a.binaries, "endpoint"), []string{
		"--socket=" + p.socket, "--driver=" + p.driver.Name, "--node=" + node, fmt.Sprintf("--controller=%v", p.controller()),
		"--client=" + id, "--cidrs=" + strings.Join(p.driver.Nodes[p.node], ","),
		"--block-list=" + a.blockList(), "--control=" + a.controlFile(p.driver.Name), "--calls=" + a.calls(),
	}, nil); err != nil {
		p.endpoint = nil
		return err
	}
	return p.endpoint.Until(ctx, connectTimeout, func() error {
		c, err := net.Dial("unix", p.socket)
		if err != nil {
			return err
		}
		return c.Close()
	})
}

// stop ends the sidecar first: without its endpoint it would do so by itself, and say so.
func (p *csiPlugin) stop() error {
	var problems []error
	for _, r := range []*Replica{p.sidecar, p.endpoint} {
		if r != nil {
			problems = append(problems, r.Kill())
		}
	}
	return errors.Join(problems...)
}

// LoseNode ends what runs on a node, as a loss of power does, but for the one that
// fences: LoseController. Its pods and CSIAddonsNodes stay.
func (a *CSIAddons) LoseNode(node string) error { return stopPlugins(a.onNode(node)) }

// ReturnNode starts again what LoseNode has ended, and waits until the manager is
// connected to it.
func (a *CSIAddons) ReturnNode(ctx context.Context, node string) error {
	return a.startPlugins(ctx, a.onNode(node))
}

// rebootNode restarts what runs on a node, in new sandboxes of its pods.
func (a *CSIAddons) rebootNode(ctx context.Context, node string) error {
	plugins := a.onNode(node)
	if len(plugins) == 0 {
		return nil
	}
	if err := stopPlugins(plugins); err != nil {
		return err
	}
	for _, p := range plugins {
		err := a.sandbox.RestartSandbox(ctx, client.ObjectKey{Namespace: a.Namespace, Name: p.pod})
		if client.IgnoreNotFound(err) != nil { // else its DaemonSet creates another
			return err
		}
	}
	return a.startPlugins(ctx, plugins)
}

// LoseController ends the one that fences for a driver. Its lease has to run out
// before there is another.
func (a *CSIAddons) LoseController(driver string) error {
	return stopPlugins(a.controllerOf(driver))
}

// ReturnController starts another, in the pod that its Deployment has by now, and
// waits until it is the one that fences.
func (a *CSIAddons) ReturnController(ctx context.Context, driver string) error {
	return a.startPlugins(ctx, a.controllerOf(driver))
}

func (a *CSIAddons) onNode(node string) []*csiPlugin {
	return a.those(func(p *csiPlugin) bool { return !p.controller() && p.node == node })
}

func (a *CSIAddons) controllerOf(driver string) []*csiPlugin {
	return a.those(func(p *csiPlugin) bool { return p.controller() && p.driver.Name == driver })
}

func (a *CSIAddons) those(are func(*csiPlugin) bool) []*csiPlugin {
	var list []*csiPlugin
	for _, p := range a.plugins {
		if are(p) {
			list = append(list, p)
		}
	}
	return list
}

var errNoPlugin = errors.New("there is no such plugin")

func (a *CSIAddons) startPlugins(ctx context.Context, plugins []*csiPlugin) error {
	for _, p := range plugins {
		if err := a.startPlugin(ctx, p); err != nil {
			return err
		}
	}
	return a.waitConnected(ctx, plugins)
}

func stopPlugins(plugins []*csiPlugin) error {
	if len(plugins) == 0 {
		return errNoPlugin
	}
	var problems []error
	for _, p := range plugins {
		problems = append(problems, p.stop())
	}
	return errors.Join(problems...)
}

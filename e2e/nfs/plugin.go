package nfs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// kubeletDir is in memory, in the machine of the tests.
const kubeletDir = "/var/lib/kubelet"

// Plugin is the node plugin, as the DaemonSet of the manifests runs it, and what its
// kubelet would ask of it.
type Plugin struct {
	Process *sandbox.Replica
	Node    csi.NodeClient

	driver     string
	node       string
	connection *grpc.ClientConn
}

// StartPlugin starts the node plugin of a node, with the rights of its service account.
func (c *Cluster) StartPlugin(ctx context.Context, node string, args ...string) (*Plugin, error) {
	return c.StartPluginOf(ctx, Driver, node, args...)
}

// StartPluginOf starts the node plugin of another driver.
func (c *Cluster) StartPluginOf(ctx context.Context, driver, node string, args ...string) (*Plugin, error) {
	dir := filepath.Join(c.Dir, "plugin-"+node)
	socket := filepath.Join(kubeletDir, "plugins", driver, "csi.sock")
	for _, folder := range []string{dir, filepath.Dir(socket), filepath.Join(kubeletDir, "plugins_registry"), filepath.Join(kubeletDir, "pods")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, fmt.Errorf("making the plugin's folders: %w", err)
		}
	}
	kubeconfig, err := c.ServiceAccountKubeconfig(ctx, "fairlead-csi", "fairlead-csi-node", dir)
	if err != nil {
		return nil, err
	}
	process, err := c.StartProcess("csi-node", filepath.Join(dir, "log"), c.Fairlead,
		append([]string{"csi-node", "--driver-name=" + driver, "--csi-endpoint=unix://" + socket, "--kubeconfig=" + kubeconfig, "--health-listen=127.0.0.1:9811"}, args...), []string{"NODE_NAME=" + node})
	if err != nil {
		return nil, err
	}
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("connecting to the node plugin: %w", err)
	}
	p := &Plugin{Process: process, Node: csi.NewNodeClient(connection), driver: driver, node: node, connection: connection}
	_, err = p.Node.NodeGetInfo(ctx, &csi.NodeGetInfoRequest{}, grpc.WaitForReady(true))
	return p, err
}

// Stop ends the plugin as a kubelet does.
func (p *Plugin) Stop() error {
	_ = p.connection.Close()
	return p.Process.Stop()
}

// target is where the kubelet has a pod's volume mounted.
func target(pod, volume string) string {
	return filepath.Join(kubeletDir, "pods", pod, "volumes/kubernetes.io~csi", volume, "mount")
}

// Publish mounts a volume that is attached to the node, as the kubelet would: with what
// the PersistentVolume says, and more options.
func (c *Cluster) Publish(ctx context.Context, p *Plugin, volume, pod string, options ...string) (string, error) {
	a, err := c.Assignment(ctx, volume)
	if err != nil {
		return "", err
	}
	var pv corev1.PersistentVolume
	if err := c.Client.Get(ctx, client.ObjectKey{Name: volume}, &pv); err != nil {
		return "", fmt.Errorf("reading the volume: %w", err)
	}
	path := target(pod, volume)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", fmt.Errorf("making the pod's folder: %w", err)
	}
	_, err = p.Node.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
		VolumeId: pv.Spec.CSI.VolumeHandle, TargetPath: path,
		PublishContext:   map[string]string{p.driver + "/assigned-ip": a.Addresses[p.node]},
		VolumeContext:    pv.Spec.CSI.VolumeAttributes,
		VolumeCapability: capability(append(pv.Spec.MountOptions, options...)),
	})
	return path, err
}

// Unpublish unmounts it again.
func (p *Plugin) Unpublish(ctx context.Context, volume, pod string) error {
	_, err := p.Node.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: volume, TargetPath: target(pod, volume)})
	return err
}

func capability(options []string) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{MountFlags: options}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER},
	}
}

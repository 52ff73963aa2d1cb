package beside

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
)

// Interfaces of a pod's additional networks with their addresses, as Multus reported.
func Interfaces(pod corev1.Pod) map[string][]string {
	networks, _ := multus.ReportedInterfaces(pod.Annotations) // none without a status
	found := map[string][]string{}
	for _, n := range networks {
		if strings.Contains(n.Network, "/") { // not the cluster network
			found[n.Interface] = n.IPs
		}
	}
	return found
}

// Requested is the network that an object's annotations ask for, as Fairlead writes it;
// empty is none.
func Requested(annotations map[string]string) string {
	a, err := multus.ManagedAttachment(annotations[multus.NetworksAnnotation], Namespace, longhorn.DefaultNames().Interfaces())
	if err != nil {
		return err.Error()
	}
	return a.String()
}

// Plugin is the DaemonSet of the CSI plugin.
func (c *Cluster) Plugin(ctx context.Context) (*appsv1.DaemonSet, error) {
	var ds appsv1.DaemonSet
	if err := c.Client.Get(ctx, key(longhorn.DefaultNames().ClientDaemonSet), &ds); err != nil {
		return nil, fmt.Errorf("reading the CSI plugin's DaemonSet: %w", err)
	}
	return &ds, nil
}

// PluginPod is the Ready CSI plugin pod of a node.
func (c *Cluster) PluginPod(ctx context.Context, node string) (*corev1.Pod, error) {
	pods, err := c.Pods(ctx, "app", "longhorn-csi-plugin")
	if err != nil {
		return nil, err
	}
	for _, pod := range pods {
		if pod.Spec.NodeName == node && pod.DeletionTimestamp == nil && sandbox.IsReady(&pod) {
			return &pod, nil
		}
	}
	return nil, fmt.Errorf("no CSI plugin pod on %s is Ready", node)
}

// Server is the share-manager pod of a volume.
func (c *Cluster) Server(ctx context.Context, volume string) (*corev1.Pod, error) {
	var pod corev1.Pod
	if err := c.Client.Get(ctx, key("share-manager-"+volume), &pod); err != nil {
		return nil, fmt.Errorf("reading the server of %s: %w", volume, err)
	}
	return &pod, nil
}

// Published are the ready addresses of a volume's EndpointSlices, IPv4 only.
func (c *Cluster) Published(ctx context.Context, volume string) ([]string, error) {
	var list discoveryv1.EndpointSliceList
	if err := c.Client.List(ctx, &list, client.InNamespace(Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: volume}); err != nil {
		return nil, fmt.Errorf("listing the slices of %s: %w", volume, err)
	}
	var addresses []string
	for _, slice := range list.Items {
		for _, endpoint := range slice.Endpoints {
			if slice.AddressType == discoveryv1.AddressTypeIPv4 && (endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready) {
				addresses = append(addresses, endpoint.Addresses...)
			}
		}
	}
	slices.Sort(addresses)
	return slices.Compact(addresses), nil
}

// Mountable is MountableOn the node of the workloads.
func (c *Cluster) Mountable(ctx context.Context, volume string) error {
	return c.MountableOn(ctx, volume, c.Manager.pod.Spec.NodeName)
}

// MountableOn says what keeps a node from mounting a volume: that its endpoint leads to
// one address, and that this is the server's on a network that the node's CSI plugin is
// on, too.
func (c *Cluster) MountableOn(ctx context.Context, volume, node string) error {
	endpoint, err := c.Text(ctx, "ShareManager", volume, "status", "endpoint")
	if err != nil {
		return err
	}
	state, err := c.Text(ctx, "ShareManager", volume, "status", "state")
	if err != nil {
		return err
	}
	if state != "running" {
		return fmt.Errorf("ShareManager %s is %s", volume, state)
	}
	// Simulated servers run at once; real ones wait for the volume.
	if state, err = c.Text(ctx, "Volume", volume, "status", "state"); err != nil || state != "attached" {
		return errors.Join(err, fmt.Errorf("the server runs, and volume %s is %s", volume, state))
	}
	var service corev1.Service
	if err := c.Client.Get(ctx, key(volume), &service); err != nil {
		return fmt.Errorf("reading the Service of %s: %w", volume, err)
	}
	host := strings.TrimSuffix(strings.TrimPrefix(endpoint, "nfs://"), "/"+volume)
	if headless := service.Spec.ClusterIP == corev1.ClusterIPNone; headless != strings.HasPrefix(host, volume+".") || !headless && host != service.Spec.ClusterIP {
		return fmt.Errorf("endpoint %s does not fit the Service, whose cluster IP is %s", endpoint, service.Spec.ClusterIP)
	}
	addresses, err := c.Published(ctx, volume)
	if err != nil {
		return err
	}
	if len(addresses) != 1 {
		return fmt.Errorf("published addresses of %s: %v, want one", volume, addresses)
	}
	server, err := c.Server(ctx, volume)
	if err != nil {
		return err
	}
	if addresses[0] == server.Status.PodIP {
		return nil // every pod reaches the cluster network
	}
	// By this value, applied or not, the plugin mounts in its own network or the host's.
	if value, err := c.Text(ctx, "Setting", c.Version.RWXNetwork, "value"); err != nil || value == c.Version.RWXValue("") {
		return fmt.Errorf("%s is served at %s, and mounted from the host's network (%v)", volume, addresses[0], err)
	}
	return c.ReachedOn(ctx, volume, node)
}

// ReachedOn says what keeps the CSI plugin pod of a node, and mounts that were made in its
// network, from the published address of a volume on a storage network.
func (c *Cluster) ReachedOn(ctx context.Context, volume, node string) error {
	server, err := c.Server(ctx, volume)
	if err != nil {
		return err
	}
	plugin, err := c.PluginPod(ctx, node)
	if err != nil {
		return err
	}
	published, err := c.Published(ctx, volume)
	if err != nil {
		return err
	}
	for name, addresses := range Interfaces(*server) {
		if len(published) != 1 || !slices.Contains(addresses, published[0]) {
			continue
		}
		if len(Interfaces(*plugin)[name]) > 0 && Requested(server.Annotations) == Requested(plugin.Annotations) {
			return nil
		}
		return fmt.Errorf("%s is served at %s on %s, and the CSI plugin pod %s is on %v", volume, published[0], Requested(server.Annotations), plugin.Name, Interfaces(*plugin))
	}
	return fmt.Errorf("the addresses %v of %s are not its server's on a network", published, volume)
}

package beside

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/fairlead-io/fairlead/e2e/machine"
)

// StartSecondManager runs the manager of node-2 from now on. It listens on the ports that
// the first one has, so it gets a network apart, with its own webhooks; what else it calls
// is passed on. Both managers write settings, so how often depends on who is first:
// TestLonghornIsAsRecorded has to come before.
func (c *Cluster) StartSecondManager(ctx context.Context) error {
	if c.second {
		return nil
	}
	c.second = true
	node := c.Managed()[1]
	pod, err := c.managerPod(ctx, node)
	if err != nil {
		return err
	}
	apart, err := machine.NewApart(Machine())
	if err != nil {
		return err
	}
	rest := net.JoinHostPort(pod.Status.PodIP, restPort)
	listener, err := net.Listen("tcp", rest)
	if err != nil {
		return fmt.Errorf("listening for the manager of %s: %w", node, err)
	}
	startRelay(listener, apart.Dial)
	calls := []string{strings.TrimPrefix(c.Config.Host, "https://"), net.JoinHostPort(c.Manager.pod.Status.PodIP, restPort)}
	for _, port := range instancePorts {
		calls = append(calls, ":"+port)
	}
	for _, address := range calls {
		listener, err := apart.Listen(address)
		if err != nil {
			return fmt.Errorf("listening for what the manager of %s calls: %w", node, err)
		}
		startRelay(listener, dial)
	}
	if out, err := c.Kubectl(ctx, fmt.Sprintf(longhornNode, node, peerDisk), "create", "-f", "-"); err != nil {
		return fmt.Errorf("adding Longhorn's node %s: %w\n%s", node, err, out)
	}
	arguments := append([]string{"--net=" + apart.Path(), c.program("longhorn-manager")}, c.daemonArguments()...)
	if _, err = c.keep(ctx, "longhorn-manager-"+node, "nsenter", arguments, c.podEnvironment(pod)); err != nil {
		return err
	}
	return c.waitUsable(ctx)
}

// instancePorts are where e2e/longhorn/instances listens.
var instancePorts = []string{"8500", "8501", "8503", "9600"}

// peerDisk is a disk of its own: both managers see the same folders.
const peerDisk = "/var/lib/longhorn-peer"

// longhornNode is there before its manager, which would add the disk that the first one has.
const longhornNode = `apiVersion: longhorn.io/v1beta2
kind: Node
metadata: {name: %[1]s, namespace: ` + Namespace + `}
spec:
  name: %[1]s
  allowScheduling: true
  evictionRequested: false
  tags: []
  disks:
    default: {path: %[2]s/, diskType: filesystem, allowScheduling: true, evictionRequested: false, storageReserved: 0, tags: []}
`

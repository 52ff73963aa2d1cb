package beside

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/eventually"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// Manager is longhorn-manager's process.
type Manager struct {
	*sandbox.Kept
	cluster *Cluster
	pod     *corev1.Pod
	// backend is Service longhorn-backend: the REST API listens at the pod's address only.
	backend *Relay
}

// startManager runs the manager as the pod of its DaemonSet, and waits for its API.
func (c *Cluster) startManager(ctx context.Context) error {
	pod, err := c.managerPod(ctx, c.State.Nodes[0])
	if err != nil {
		return err
	}
	m := &Manager{cluster: c, pod: pod}
	listener, err := net.Listen("tcp", net.JoinHostPort(serviceAddresses["longhorn-backend"], restPort))
	if err != nil {
		return fmt.Errorf("listening for Service longhorn-backend: %w", err)
	}
	m.backend = StartRelay(listener, net.JoinHostPort(m.pod.Status.PodIP, restPort))
	if m.Kept, err = c.keep(ctx, "longhorn-manager", c.program("longhorn-manager"), c.daemonArguments(), c.podEnvironment(m.pod)); err != nil {
		return err
	}
	c.Manager = m
	return m.WaitReady(ctx)
}

func (c *Cluster) daemonArguments() []string {
	v := c.Version
	return []string{
		"-d", "daemon", "--engine-image", v.Image("longhorn-engine"), "--instance-manager-image", v.Image("longhorn-instance-manager"),
		"--share-manager-image", v.Image("longhorn-share-manager"), "--backing-image-manager-image", v.Image("backing-image-manager"),
		"--support-bundle-manager-image", "longhornio/support-bundle-kit:v0.0.45", "--manager-image", v.Image("longhorn-manager"),
		"--service-account", serviceAccount, "--kube-config", c.kubeconfig,
	}
}

// managerPod is the pod of longhorn-manager's DaemonSet on a node.
func (c *Cluster) managerPod(ctx context.Context, node string) (*corev1.Pod, error) {
	var pod corev1.Pod
	err := eventually.Until(ctx, "a pod of longhorn-manager on "+node, startTimeout, func() error {
		pods, err := c.Pods(ctx, "app", "longhorn-manager")
		if err != nil {
			return err
		}
		i := slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Spec.NodeName == node && p.Status.PodIP != "" })
		if i < 0 {
			return fmt.Errorf("none of %d is there", len(pods))
		}
		pod = pods[i]
		return nil
	})
	return &pod, err
}

// Restart kills the process, and waits until its successor answers.
func (m *Manager) Restart(ctx context.Context) error {
	if err := m.Process().Kill(); err != nil {
		return err
	}
	return m.WaitReady(ctx)
}

// WaitReady waits until the REST API answers.
func (m *Manager) WaitReady(ctx context.Context) error {
	return eventually.Until(ctx, "longhorn-manager", startTimeout, func() error {
		select {
		case <-m.Process().Ended():
			return errors.New("it has ended: see " + m.cluster.Log("longhorn-manager"))
		default:
		}
		return m.call(ctx, http.MethodGet, "", nil, nil)
	})
}

// Pods of Longhorn's namespace with a label.
func (c *Cluster) Pods(ctx context.Context, label, value string) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := c.Client.List(ctx, &list, client.InNamespace(Namespace), client.MatchingLabels{label: value}); err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	return list.Items, nil
}

package beside

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Manager is longhorn-manager's process.
type Manager struct {
	*kept
	pod *corev1.Pod
	// backend is Service longhorn-backend: the REST API listens at the pod's address only.
	backend *Relay
}

// startManager runs the manager as the pod of its DaemonSet, and waits for its API.
func (c *Cluster) startManager(ctx context.Context) error {
	m := &Manager{}
	err := c.Eventually(ctx, "a pod of longhorn-manager", startTimeout, func() error {
		pods, err := c.Pods(ctx, "app", "longhorn-manager")
		if err != nil {
			return err
		}
		if len(pods) != 1 || pods[0].Status.PodIP == "" {
			return fmt.Errorf("%d pods", len(pods))
		}
		m.pod = &pods[0]
		return nil
	})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(serviceAddresses["longhorn-backend"], restPort))
	if err != nil {
		return fmt.Errorf("listening for Service longhorn-backend: %w", err)
	}
	m.backend = StartRelay(listener, net.JoinHostPort(m.pod.Status.PodIP, restPort))
	m.kept, err = c.keep(ctx, "longhorn-manager", "longhorn-manager", []string{
		"-d", "daemon", "--engine-image", engineImage, "--instance-manager-image", "longhornio/longhorn-instance-manager:" + Version,
		"--share-manager-image", "longhornio/longhorn-share-manager:" + Version,
		"--backing-image-manager-image", "longhornio/backing-image-manager:" + Version,
		"--support-bundle-manager-image", "longhornio/support-bundle-kit:v0.0.45", "--manager-image", managerImage,
		"--service-account", serviceAccount, "--kube-config", c.kubeconfig,
	}, c.podEnvironment(m.pod))
	if err != nil {
		return err
	}
	c.Manager = m
	return m.WaitReady(ctx)
}

const managerImage = "longhornio/longhorn-manager:" + Version

func (c *Cluster) podEnvironment(pod *corev1.Pod) []string {
	return []string{
		"POD_NAME=" + pod.Name, "POD_NAMESPACE=" + Namespace, "POD_IP=" + pod.Status.PodIP, "NODE_NAME=" + pod.Spec.NodeName,
		"SERVICE_ACCOUNT=" + serviceAccount,
	}
}

// Restart kills the process, and waits until its successor answers.
func (m *Manager) Restart(ctx context.Context) error {
	if err := m.current().Kill(); err != nil {
		return err
	}
	return m.WaitReady(ctx)
}

// WaitReady waits until the REST API answers.
func (m *Manager) WaitReady(ctx context.Context) error {
	return m.cluster.Eventually(ctx, "longhorn-manager", startTimeout, func() error {
		select {
		case <-m.current().Ended():
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

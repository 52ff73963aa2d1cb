package beside

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// Manager is longhorn-manager's process. When it ends, it is started again, as a kubelet
// would do.
type Manager struct {
	cluster *Cluster
	pod     *corev1.Pod
	cancel  context.CancelFunc
	done    chan struct{}
	backend *backend

	mu      sync.Mutex
	process *sandbox.Replica
	starts  int
}

// restartDelay is short: a kubelet waits ten seconds the second time.
const restartDelay = 500 * time.Millisecond

// startManager runs the manager as the pod of its DaemonSet, and waits for its API.
func (c *Cluster) startManager(ctx context.Context) error {
	m := &Manager{cluster: c, done: make(chan struct{})}
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
	if m.backend, err = startBackend(m.pod.Status.PodIP); err != nil {
		return err
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	m.cancel = cancel
	if err := m.start(); err != nil {
		cancel()
		return err
	}
	c.Manager = m
	go m.keep(running)
	return m.WaitReady(ctx)
}

func (m *Manager) start() error {
	c := m.cluster
	process, err := c.StartProcess("longhorn-manager", c.Log("longhorn-manager"), c.program("longhorn-manager"), []string{
		"-d", "daemon", "--engine-image", engineImage, "--instance-manager-image", "longhornio/longhorn-instance-manager:" + Version,
		"--share-manager-image", "longhornio/longhorn-share-manager:" + Version,
		"--backing-image-manager-image", "longhornio/backing-image-manager:" + Version,
		"--support-bundle-manager-image", "longhornio/support-bundle-kit:v0.0.45", "--manager-image", managerImage,
		"--service-account", serviceAccount, "--kube-config", c.kubeconfig,
	}, c.podEnvironment(m.pod))
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.process = process
	m.starts++
	return nil
}

const managerImage = "longhornio/longhorn-manager:" + Version

func (c *Cluster) podEnvironment(pod *corev1.Pod) []string {
	return []string{
		"POD_NAME=" + pod.Name, "POD_NAMESPACE=" + Namespace, "POD_IP=" + pod.Status.PodIP, "NODE_NAME=" + pod.Spec.NodeName,
		"SERVICE_ACCOUNT=" + serviceAccount,
	}
}

// keep starts the process again whenever it ends.
func (m *Manager) keep(ctx context.Context) {
	defer close(m.done)
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.current().Ended():
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(restartDelay):
		}
		if err := m.start(); err != nil {
			fmt.Fprintln(m.cluster.Out, "starting longhorn-manager again:", err)
			return
		}
	}
}

func (m *Manager) current() *sandbox.Replica {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.process
}

// stop ends the process for good. It is killed by the sandbox.
func (m *Manager) stop() {
	m.backend.stop()
	m.cancel()
	<-m.done
}

// Restart kills the process, and waits until its successor answers.
func (m *Manager) Restart(ctx context.Context) error {
	if err := m.current().Kill(); err != nil {
		return err
	}
	return m.WaitReady(ctx)
}

// Starts is how often the process was started.
func (m *Manager) Starts() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.starts
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

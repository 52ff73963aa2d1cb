package beside

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// account is where a kubelet puts the account of a pod. Later versions of Longhorn read it, whatever --kube-config says.
const account = "/run/secrets/kubernetes.io/serviceaccount"

// writeAccount puts the account of Longhorn's pods where they look for it.
func (c *Cluster) writeAccount() error {
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of %s: %w", serviceAccount, err)
	}
	if len(config.CAData) == 0 && config.CAFile != "" {
		if config.CAData, err = os.ReadFile(config.CAFile); err != nil {
			return err
		}
	}
	problems := []error{os.MkdirAll(account, 0o755)}
	for name, content := range map[string]string{"token": config.BearerToken, "ca.crt": string(config.CAData), "namespace": Namespace} {
		problems = append(problems, os.WriteFile(filepath.Join(account, name), []byte(content), 0o600))
	}
	return errors.Join(problems...)
}

// podEnvironment is what a kubelet and Longhorn's manifests set in a pod.
func (c *Cluster) podEnvironment(pod *corev1.Pod) []string {
	environment := []string{
		"POD_NAME=" + pod.Name, "POD_NAMESPACE=" + Namespace, "POD_IP=" + pod.Status.PodIP, "NODE_NAME=" + pod.Spec.NodeName,
		"SERVICE_ACCOUNT=" + serviceAccount,
	}
	if api, err := url.Parse(c.Config.Host); err == nil {
		if host, port, err := net.SplitHostPort(api.Host); err == nil {
			environment = append(environment, "KUBERNETES_SERVICE_HOST="+host, "KUBERNETES_SERVICE_PORT="+port)
		}
	}
	return environment
}

// writeEngine puts a program where the engine's would be, which answers which version it is.
func (c *Cluster) writeEngine(ctx context.Context) error {
	answer, err := exec.CommandContext(ctx, c.program("instances"), "-print-engine", c.Version.Name).Output()
	if err != nil {
		return fmt.Errorf("asking for the version of the engine: %w", err)
	}
	folder := strings.NewReplacer("/", "-", ":", "-").Replace(c.Version.Image("longhorn-engine"))
	for _, base := range []string{engines, nodeEngines} {
		if err := os.MkdirAll(filepath.Join(base, folder), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(base, folder, "longhorn"), []byte("#!/bin/sh\necho '"+string(answer)+"'\n"), 0o755); err != nil {
			return err
		}
	}
	return nil
}

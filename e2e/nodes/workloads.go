//go:build linux

package nodes

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/e2e/eventually"
)

// Workload is a Deployment of one pod that has a volume at /data.
type Workload struct {
	Name, Claim string
	// Node on which the pod runs; empty for any.
	Node string
	// Apart is a name: workloads with the same name run on different nodes.
	Apart string
	// Command of the container; empty waits for Exec.
	Command string
}

const workloadManifest = `apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: default}
spec:
  strategy: {type: Recreate}
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s, apart: "%[6]s"}}
    spec:
      terminationGracePeriodSeconds: 2
      %[4]s
      containers:
        - name: shell
          image: %[5]s
          imagePullPolicy: Never
          command: [sh, -c, %[3]q]
          volumeMounts: [{name: data, mountPath: /data}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: %[2]s}}]
`

// CreateClaim of a shared volume.
func (c *Cluster) CreateClaim(ctx context.Context, name, class, mode string, more ...string) error {
	manifest := fmt.Sprintf(`apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %s, namespace: default%s}
spec: {storageClassName: %s, accessModes: [%s], resources: {requests: {storage: 256Mi}}}
`, name, strings.Join(more, ""), class, mode)
	out, err := c.Kubectl(ctx, manifest, "apply", "--server-side", "-f", "-")
	if err != nil {
		return fmt.Errorf("creating claim %s: %w\n%s", name, err, out)
	}
	return nil
}

// Run starts a workload, and does not wait for it.
func (c *Cluster) Run(ctx context.Context, w Workload) error {
	command, where := w.Command, ""
	if command == "" {
		command = "trap exit TERM; while :; do sleep 1; done"
	}
	if w.Node != "" {
		where = fmt.Sprintf("nodeSelector: {kubernetes.io/hostname: %s}", w.Node)
	}
	if w.Apart != "" {
		where = fmt.Sprintf("affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {apart: %s}}}]}}", w.Apart)
	}
	manifest := fmt.Sprintf(workloadManifest, w.Name, w.Claim, command, where, WorkloadImage, w.Apart)
	if out, err := c.Kubectl(ctx, manifest, "apply", "--server-side", "-f", "-"); err != nil {
		return fmt.Errorf("starting workload %s: %w\n%s", w.Name, err, out)
	}
	return nil
}

// workloadTimeout includes creating and attaching a volume.
const workloadTimeout = 3 * time.Minute

// WaitWorkload waits until the workload's pod is Ready, and returns it.
func (c *Cluster) WaitWorkload(ctx context.Context, name string) (*corev1.Pod, error) {
	var pod *corev1.Pod
	err := eventually.Until(ctx, "workload "+name, workloadTimeout, func() error {
		pods, err := c.PodsWith(ctx, "default", "app", name)
		if err != nil {
			return err
		}
		for i := range pods {
			if ready(&pods[i]) {
				pod = &pods[i]
				return nil
			}
		}
		return fmt.Errorf("none of %d pods is Ready", len(pods))
	})
	return pod, err
}

// Remove deletes workloads, and waits until their pods are gone.
func (c *Cluster) Remove(ctx context.Context, names ...string) error {
	for _, name := range names {
		if out, err := c.Kubectl(ctx, "", "delete", "deployment", name, "--cascade=foreground", "--ignore-not-found", "--timeout=2m"); err != nil {
			return fmt.Errorf("removing workload %s: %w\n%s", name, err, out)
		}
	}
	return nil
}

// Shell runs a shell command in the workload's pod.
func (c *Cluster) Shell(ctx context.Context, workload, command string) (string, error) {
	out, err := c.Kubectl(ctx, "", "exec", "deployment/"+workload, "--", "sh", "-c", command)
	return strings.TrimSpace(out), err
}

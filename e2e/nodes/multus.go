//go:build linux

package nodes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// prepareMultus writes what Multus on the nodes needs: the rights of its own installation, and a kubeconfig.
func (c *Cluster) prepareMultus(ctx context.Context) error {
	const account = `apiVersion: v1
kind: ServiceAccount
metadata: {name: multus, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: multus}
rules:
  - {apiGroups: [k8s.cni.cncf.io], resources: ["*"], verbs: ["*"]}
  - {apiGroups: [""], resources: [pods, pods/status], verbs: [get, list, update, watch]}
  - {apiGroups: ["", events.k8s.io], resources: [events], verbs: [create, patch, update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: multus}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: multus}
subjects: [{kind: ServiceAccount, name: multus, namespace: kube-system}]
`
	if out, err := c.Kubectl(ctx, account, "apply", "--server-side", "-f", "-"); err != nil {
		return fmt.Errorf("giving Multus its rights: %w\n%s", err, out)
	}
	folder := c.multusFolder()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	path, err := c.ServiceAccountKubeconfig(ctx, "kube-system", "multus", folder)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strings.Replace(string(text), "127.0.0.1", MachineAddress, 1)), 0o600)
}

func (c *Cluster) multusFolder() string { return filepath.Join(c.Dir, "multus") }

func (c *Cluster) multusKubeconfig() string { return filepath.Join(c.multusFolder(), "kubeconfig") }

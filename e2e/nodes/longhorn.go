//go:build linux

package nodes

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/eventually"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads"
)

//go:embed longhorn.yaml
var longhornManifest string

// Namespace of Longhorn.
var Namespace = longhorn.DefaultNames().Namespace

// InstallLonghorn installs Longhorn as its release manifest does, and waits until volumes can be attached on all nodes.
func (c *Cluster) InstallLonghorn(ctx context.Context) error {
	manager, err := c.Ensure(ctx, "longhorn")
	if err != nil {
		return err
	}
	if out, err := c.Kubectl(ctx, "", "apply", "--server-side", "--force-conflicts", "-f", filepath.Join(manager, "crds.yaml")); err != nil {
		return fmt.Errorf("installing Longhorn's CRDs: %w\n%s", err, out)
	}
	if out, err := c.Kubectl(ctx, longhornManifest, "apply", "--server-side", "-f", "-"); err != nil {
		return fmt.Errorf("installing Longhorn: %w\n%s", err, out)
	}
	return c.waitLonghorn(ctx)
}

// longhornTimeout is for a busy machine: Longhorn's disk monitor alone takes half a minute.
const longhornTimeout = 4 * time.Minute

func (c *Cluster) waitLonghorn(ctx context.Context) error {
	for _, name := range []string{"daemonset/longhorn-manager", "deployment/longhorn-driver-deployer", "daemonset/longhorn-csi-plugin", "deployment/csi-attacher", "deployment/csi-provisioner"} {
		err := eventually.Until(ctx, name, longhornTimeout, func() error {
			_, err := c.Kubectl(ctx, "", "-n", Namespace, "rollout", "status", name, "--timeout=30s")
			return err
		})
		if err != nil {
			return err
		}
	}
	return eventually.Until(ctx, "instance managers and engine images", longhornTimeout, func() error {
		for kind, want := range map[string]string{"InstanceManager": "running", "EngineImage": "deployed"} {
			objects, err := c.longhornObjects(ctx, kind)
			if err != nil {
				return err
			}
			states := map[string]int{}
			for _, o := range objects {
				state, _, _ := unstructured.NestedString(o.Object, "status", "currentState")
				if state == "" {
					state, _, _ = unstructured.NestedString(o.Object, "status", "state")
				}
				states[state]++
			}
			if states[want] != len(objects) || len(objects) == 0 || kind == "InstanceManager" && len(objects) != len(c.Nodes) {
				return fmt.Errorf("%s: %v", kind, states)
			}
		}
		return nil
	})
}

func (c *Cluster) longhornObjects(ctx context.Context, kind string) ([]unstructured.Unstructured, error) {
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "longhorn.io", Version: "v1beta2", Kind: kind + "List"})
	if err := c.Client.List(ctx, &list, client.InNamespace(Namespace)); err != nil {
		return nil, fmt.Errorf("listing %ss: %w", kind, err)
	}
	return list.Items, nil
}

// Set writes a setting of Longhorn.
func (c *Cluster) Set(ctx context.Context, name, value string) error {
	out, err := c.Kubectl(ctx, "", "-n", Namespace, "patch", "settings.longhorn.io", name, "--type=merge", "-p", fmt.Sprintf(`{"value":%q}`, value))
	if err != nil {
		return fmt.Errorf("setting %s: %w\n%s", name, err, out)
	}
	fmt.Fprint(c.Out, out)
	return nil
}

// WaitApplied waits until Longhorn's settings are applied.
func (c *Cluster) WaitApplied(ctx context.Context, timeout time.Duration, names ...string) error {
	return eventually.Until(ctx, fmt.Sprintf("settings %v to be applied", names), timeout, func() error {
		settings, err := c.longhornObjects(ctx, "Setting")
		if err != nil {
			return err
		}
		for _, s := range settings {
			applied, _, _ := unstructured.NestedBool(s.Object, "status", "applied")
			if slices.Contains(names, s.GetName()) && !applied {
				return fmt.Errorf("%s is not: annotations %v", s.GetName(), s.GetAnnotations())
			}
		}
		return nil
	})
}

// WaitDetached waits until no volume of Longhorn is attached.
func (c *Cluster) WaitDetached(ctx context.Context) error {
	return eventually.Until(ctx, "volumes to be detached", longhornTimeout, func() error {
		volumes, err := c.longhornObjects(ctx, "Volume")
		if err != nil {
			return err
		}
		for _, v := range volumes {
			if state, _, _ := unstructured.NestedString(v.Object, "status", "state"); state != "detached" {
				return fmt.Errorf("%s is %s", v.GetName(), state)
			}
		}
		return nil
	})
}

// PodsWith lists pods of a namespace with a label.
func (c *Cluster) PodsWith(ctx context.Context, namespace, label, value string) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := c.Client.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{label: value}); err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	return list.Items, nil
}

// ready tells whether a pod is Ready and is not being deleted.
func ready(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && reads.Ready(pod)
}

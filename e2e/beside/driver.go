package beside

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/internal/longhorn"
)

// socketFolder is where the deployer's pods have the CSI driver's socket. It is in the machine only.
const socketFolder = "/csi"

// startDriver runs Longhorn's CSI driver on the manager's node, and Kubernetes' attacher, as
// the deployer's pods would: a VolumeAttachment of Kubernetes becomes a ticket of Longhorn's.
func (c *Cluster) startDriver(ctx context.Context) error {
	if err := c.registerDriver(ctx); err != nil {
		return err
	}
	plugin, err := c.Plugin(ctx)
	if err != nil {
		return err
	}
	driver, err := c.container(plugin.Spec.Template.Spec, longhorn.DefaultNames().ClientDaemonSet)
	if err != nil {
		return err
	}
	const attacherName = "csi-attacher"
	var deployment appsv1.Deployment
	if err := c.Client.Get(ctx, key(attacherName), &deployment); err != nil {
		return fmt.Errorf("reading the attacher's Deployment: %w", err)
	}
	attacher, err := c.container(deployment.Spec.Template.Spec, attacherName)
	if err != nil {
		return err
	}
	// The first argument of the driver's container names its program.
	if c.driver, err = c.keep(ctx, plugin.Name, c.program(driver[0]), driver[1:], c.podEnvironment(c.Manager.pod)); err != nil {
		return err
	}
	c.attacher, err = c.keep(ctx, attacherName, c.program(attacherName), append(attacher, "--kubeconfig="+c.kubeconfig), nil)
	return err
}

// container returns the arguments of a container on the manager's node.
func (c *Cluster) container(pod corev1.PodSpec, name string) ([]string, error) {
	fields := map[string]string{"spec.nodeName": c.Manager.pod.Spec.NodeName, "metadata.namespace": Namespace}
	for _, container := range pod.Containers {
		if container.Name != name {
			continue
		}
		var replacements []string
		for _, variable := range container.Env {
			value := variable.Value
			if from := variable.ValueFrom; from != nil && from.FieldRef != nil {
				value = fields[from.FieldRef.FieldPath]
			}
			replacements = append(replacements, "$("+variable.Name+")", value)
		}
		replace := strings.NewReplacer(replacements...)
		var args []string
		for _, arg := range container.Args {
			args = append(args, replace.Replace(arg))
		}
		return args, nil
	}
	return nil, fmt.Errorf("there is no container %s", name)
}

// registerDriver writes what each kubelet writes when the CSI plugin registers: the answer
// of NodeGetInfo (csi/node_server.go), which is the node's name.
func (c *Cluster) registerDriver(ctx context.Context) error {
	var nodes corev1.NodeList
	if err := c.Client.List(ctx, &nodes); err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	for _, node := range nodes.Items {
		o := &storagev1.CSINode{
			ObjectMeta: metav1.ObjectMeta{Name: node.Name, OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID},
			}},
			Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: longhorn.DefaultNames().Driver, NodeID: node.Name}}},
		}
		if err := c.Client.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("registering the CSI driver on %s: %w", node.Name, err)
		}
	}
	return nil
}

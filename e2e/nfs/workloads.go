package nfs

import (
	"cmp"
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/nfs"
)

// Volume is a PersistentVolume with its claim, both by the volume's name.
type Volume struct {
	Name string
	// Service is the driver's default where it is empty.
	Service string
	// Driver, Handle and Share are Fairlead's driver, the volume's name and Export
	// where they are empty.
	Driver, Handle, Share string
	Options               []string
}

// CreateVolume creates the volume and a claim that is bound to it.
func (c *Cluster) CreateVolume(ctx context.Context, v Volume) error {
	attributes := map[string]string{"share": cmp.Or(v.Share, Export)}
	if v.Service != "" {
		attributes["service"] = Namespace + "/" + v.Service
	}
	capacity := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: v.Name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: capacity, AccessModes: modes, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			MountOptions: append([]string{"vers=3", "nolock"}, v.Options...),
			ClaimRef:     &corev1.ObjectReference{Namespace: Namespace, Name: v.Name},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: cmp.Or(v.Driver, Driver), VolumeHandle: cmp.Or(v.Handle, v.Name), VolumeAttributes: attributes,
			}},
		},
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: v.Name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To(""), VolumeName: v.Name, AccessModes: modes,
			Resources: corev1.VolumeResourceRequirements{Requests: capacity},
		},
	}
	for _, object := range []client.Object{pv, claim} {
		if err := c.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %T %s: %w", object, v.Name, err)
		}
	}
	return nil
}

// DeleteVolume deletes the claim and the volume.
func (c *Cluster) DeleteVolume(ctx context.Context, name string) error {
	for _, object := range []client.Object{
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name}},
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}},
	} {
		if err := c.Client.Delete(ctx, object); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting %T %s: %w", object, name, err)
		}
	}
	return nil
}

// nodesLabel marks the nodes of one test.
const nodesLabel = "fairlead-e2e/nodes"

// UseNodes marks the first n nodes for a test's workloads.
func (c *Cluster) UseNodes(ctx context.Context, test string, n int) error {
	return c.useNodes(ctx, test, c.State.Nodes[:n])
}

func (c *Cluster) useNodes(ctx context.Context, test string, names []string) error {
	for _, name := range names {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := c.Client.Patch(ctx, node, patchJSON(fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, nodesLabel, test))); err != nil {
			return fmt.Errorf("labelling node %s: %w", name, err)
		}
	}
	return nil
}

// CreateClients creates a Deployment whose pods use a volume, at most one on a node.
func (c *Cluster) CreateClients(ctx context.Context, test, volume string, replicas int) error {
	labels := map[string]string{"app": "nfs-client", "volume": volume}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: volume},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(replicas)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					NodeSelector: map[string]string{nodesLabel: test}, TerminationGracePeriodSeconds: ptr.To(int64(0)),
					Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
						LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "nfs-client"}}, TopologyKey: corev1.LabelHostname,
					}}}},
					Containers: []corev1.Container{{Name: "client", Image: "busybox", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}}},
					Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
						PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: volume},
					}}},
				},
			},
		},
	}
	if err := c.Client.Create(ctx, d); err != nil {
		return fmt.Errorf("creating the clients of %s: %w", volume, err)
	}
	return nil
}

// Scale changes the number of clients.
func (c *Cluster) Scale(ctx context.Context, volume string, replicas int) error {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: volume}}
	return c.Client.Patch(ctx, d, patchJSON(fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)))
}

// DeleteClients deletes the Deployment; its pods go with it.
func (c *Cluster) DeleteClients(ctx context.Context, volume string) error {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: volume}}
	return c.Client.Delete(ctx, d, client.PropagationPolicy(metav1.DeletePropagationBackground))
}

// Assignment is what the nodes of some volumes were given.
type Assignment struct {
	// Addresses by node, as nodes mount them.
	Addresses map[string]string
	// Waiting attachments are not attached yet; each with what it says.
	Waiting []string
}

// Assignment of the volumes, as VolumeAttachments have it.
func (c *Cluster) Assignment(ctx context.Context, volumes ...string) (Assignment, error) {
	var list storagev1.VolumeAttachmentList
	if err := c.Client.List(ctx, &list); err != nil {
		return Assignment{}, fmt.Errorf("listing VolumeAttachments: %w", err)
	}
	wanted := map[string]bool{}
	for _, v := range volumes {
		wanted[v] = true
	}
	a := Assignment{Addresses: map[string]string{}}
	for _, attachment := range list.Items {
		name := attachment.Spec.Source.PersistentVolumeName
		if name == nil || !wanted[*name] {
			continue
		}
		address := attachment.Status.AttachmentMetadata[attachment.Spec.Attacher+"/assigned-ip"]
		if !attachment.Status.Attached || address == "" || attachment.DeletionTimestamp != nil {
			a.Waiting = append(a.Waiting, attachment.Spec.NodeName+" "+asJSON(attachment.Status))
			continue
		}
		a.Addresses[attachment.Spec.NodeName] = address
	}
	return a, nil
}

// WaitAssigned waits until exactly that many nodes have the volumes attached.
func (c *Cluster) WaitAssigned(ctx context.Context, nodes int, volumes ...string) (Assignment, error) {
	var last Assignment
	err := c.wait(ctx, func(ctx context.Context) (bool, error) {
		a, err := c.Assignment(ctx, volumes...)
		last = a
		return err == nil && len(a.Waiting) == 0 && len(a.Addresses) == nodes, err
	})
	if err != nil {
		return last, fmt.Errorf("waiting for %d attachments of %v: %w; there are %d, and waiting %v", nodes, volumes, err, len(last.Addresses), last.Waiting)
	}
	return last, nil
}

// Loads counts the nodes of each backend.
func Loads(status map[string]string, a Assignment) map[string]int {
	loads := map[string]int{}
	for _, address := range a.Addresses {
		if backend, ok := status[address]; ok {
			address = backend
		}
		loads[address]++
	}
	return loads
}

// Range of loads.
func Range(loads map[string]int) (lowest, highest int) {
	for _, n := range loads {
		if lowest == 0 || n < lowest {
			lowest = n
		}
		highest = max(highest, n)
	}
	return lowest, highest
}

// exposures whose assignments are counted by backend.
var exposures = []nfs.Exposure{nfs.PerNode, nfs.PerNodeStable}

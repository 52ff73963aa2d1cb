package e2e

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// database is a StatefulSet of one pod with a volume, on one of two nodes.
type database struct {
	name, driver string
	nodes        []string
	clusterID    string
}

func (d database) pod() client.ObjectKey {
	return client.ObjectKey{Namespace: "default", Name: d.name + "-0"}
}

// volume names the PersistentVolume, unlike its handle.
func (d database) volume() string { return "pv-" + d.name }

// handle has no "^": Kubernetes itself can't detach a volume that has one.
func (d database) handle() string { return "0001-0009-" + d.clusterID + "-" + d.name }

// runDatabase creates the volume and the pod, waits until the pod is up, and returns its node.
func (c *cluster) runDatabase(d database) string {
	c.t.Helper()
	pv := csiVolume(d.volume(), d.driver, d.handle())
	pv.Annotations = map[string]string{
		"volume.kubernetes.io/provisioner-deletion-secret-name": "rook-csi-rbd-provisioner", "volume.kubernetes.io/provisioner-deletion-secret-namespace": "rook-ceph",
	}
	pv.Spec.CSI.VolumeAttributes = map[string]string{"clusterID": d.clusterID, "pool": "replicapool", "imageName": "csi-vol-" + d.name}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: d.name}
	set := statefulSet(d.name, d.name)
	spec := &set.Spec.Template.Spec
	spec.NodeSelector, spec.InitContainers = nil, nil
	spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: d.nodes}}}},
	}}}
	for _, o := range []client.Object{pv, claimOf(pv, "default", d.name), set} {
		c.must(c.create(o))
	}
	return c.waitUp(d, "", time.Minute)
}

var oneGiB = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}

func csiVolume(name, driver, handle string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Capacity: oneGiB, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle}},
	}}
}

// claimOf is a claim that Kubernetes binds to the volume.
func claimOf(pv *corev1.PersistentVolume, namespace, name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: pv.Spec.AccessModes, StorageClassName: ptr.To(""), VolumeName: pv.Name, Resources: corev1.VolumeResourceRequirements{Requests: oneGiB},
	}}
}

// waitUp waits until the pod runs with its volume, not on the lost node, and returns its node.
func (c *cluster) waitUp(d database, lost string, within time.Duration) string {
	c.t.Helper()
	node := ""
	c.eventually(d.name+" is up", within, func() error {
		var pod corev1.Pod
		if err := c.Client.Get(c.t.Context(), d.pod(), &pod); err != nil {
			return err
		}
		if node = pod.Spec.NodeName; node == "" || node == lost || pod.DeletionTimestamp != nil || !ready(&pod) {
			return fmt.Errorf("pod %[3]s is %[1]s on %[2]q", pod.Status.Phase, node, pod.Name)
		}
		return nil
	})
	return node
}

// ready pods run with their volumes mounted.
func ready(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && pod.Annotations[sandbox.MountedAnnotation] != ""
}

func (c *cluster) node(name string) *corev1.Node {
	c.t.Helper()
	var node corev1.Node
	c.must(c.Client.Get(c.t.Context(), client.ObjectKey{Name: name}, &node))
	return &node
}

// lose switches a node off and waits until Kubernetes has noticed.
func (c *cluster) lose(node string) {
	c.t.Helper()
	c.must(c.SwitchOff(c.t.Context(), node))
	c.waitReady(node, false)
}

func (c *cluster) waitReady(node string, want bool) {
	c.t.Helper()
	c.waitIs("node "+node+" Ready", time.Minute, want, func() any {
		return slices.ContainsFunc(c.node(node).Status.Conditions, func(n corev1.NodeCondition) bool {
			return n.Type == corev1.NodeReady && n.Status == corev1.ConditionTrue
		})
	})
}

func (c *cluster) taint(node string) {
	c.t.Helper()
	c.kubectl("taint", "nodes", node, fence.OutOfServiceTaint+"=nodeshutdown:NoExecute")
}

// other of two nodes.
func (d database) other(node string) string {
	if d.nodes[0] == node {
		return d.nodes[1]
	}
	return d.nodes[0]
}

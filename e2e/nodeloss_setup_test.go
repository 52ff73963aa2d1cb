package e2e

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/internal/cluster/csiaddons"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// runKubelets plays the kubelets' part with volumes until the test ends.
func (c *cluster) runKubelets() {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.RunKubelets(ctx)
	}()
	c.t.Cleanup(func() {
		cancel()
		<-ended
	})
}

// database is a StatefulSet of one pod with a volume, on one of two nodes.
type database struct {
	name, driver string
	nodes        []string
	mode         corev1.PersistentVolumeAccessMode
	clusterID    string
}

func (d database) pod() client.ObjectKey {
	return client.ObjectKey{Namespace: "default", Name: d.name + "-0"}
}

// volume is the name of its PersistentVolume, which is not its handle.
func (d database) volume() string { return "pv-" + d.name }

// handle has no "^": Kubernetes itself can't detach a volume that has one.
func (d database) handle() string { return "0001-0009-" + d.clusterID + "-" + d.name }

// runDatabase makes its volume and waits until its pod is up; it returns the node.
func (c *cluster) runDatabase(d database) string {
	c.t.Helper()
	d.mode = cmp.Or(d.mode, corev1.ReadWriteOnce)
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: d.volume(), Annotations: map[string]string{
			"volume.kubernetes.io/provisioner-deletion-secret-name": "rook-csi-rbd-provisioner", "volume.kubernetes.io/provisioner-deletion-secret-namespace": "rook-ceph",
		}},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{d.mode}, Capacity: size, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef: &corev1.ObjectReference{Namespace: "default", Name: d.name},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: d.driver, VolumeHandle: d.handle(), VolumeAttributes: map[string]string{"clusterID": d.clusterID, "pool": "replicapool", "imageName": "csi-vol-" + d.name},
			}},
		},
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: d.name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: pv.Spec.AccessModes, StorageClassName: ptr.To(""), VolumeName: pv.Name,
			Resources: corev1.VolumeResourceRequirements{Requests: size},
		},
	}
	labels := map[string]string{"app": d.name}
	spec := podSpec(d.name)
	spec.NodeSelector, spec.InitContainers = nil, nil
	spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: d.nodes}}}},
	}}}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: d.name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](1), ServiceName: d.name, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	}
	for _, o := range []client.Object{pv, claim, set} {
		c.must(c.Client.Create(c.t.Context(), o))
	}
	return c.waitUp(d, "", time.Minute)
}

// waitUp waits until the pod runs with its volume, on another node than the one that was
// lost, and returns its node.
func (c *cluster) waitUp(d database, lost string, within time.Duration) string {
	c.t.Helper()
	node := ""
	c.eventually(d.name+" is up", within, func() error {
		var pod corev1.Pod
		if err := c.Client.Get(c.t.Context(), d.pod(), &pod); err != nil {
			return err
		}
		if node = pod.Spec.NodeName; node == "" || node == lost || pod.DeletionTimestamp != nil || !ready(&pod) {
			return fmt.Errorf("its pod is %s on %q", pod.Status.Phase, node)
		}
		return nil
	})
	return node
}

// ready pods run with their volumes mounted.
func ready(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && pod.Annotations[sandbox.MountedAnnotation] != ""
}

// lose switches a node off and waits until Kubernetes has noticed.
func (c *cluster) lose(node string) {
	c.t.Helper()
	c.must(c.SwitchOff(c.t.Context(), node))
	c.waitReady(node, false)
}

func (c *cluster) waitReady(node string, want bool) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("%s ready: %v", node, want), time.Minute, func() error {
		var n corev1.Node
		if err := c.Client.Get(c.t.Context(), client.ObjectKey{Name: node}, &n); err != nil {
			return err
		}
		for _, condition := range n.Status.Conditions {
			if condition.Type == corev1.NodeReady && (condition.Status == corev1.ConditionTrue) == want {
				return nil
			}
		}
		return fmt.Errorf("it is not yet")
	})
}

func (c *cluster) taint(node string) {
	c.t.Helper()
	c.kubectl("taint", "nodes", node, fence.OutOfServiceTaint+"=nodeshutdown:NoExecute")
}

// moment is one event that was seen, of an attachment or of a fence.
type moment struct {
	at time.Time
	// revision orders all objects of a cluster.
	revision int64
	what     watch.EventType
	object   client.Object
}

// film keeps every event of VolumeAttachments, pods and NetworkFences: nothing is sampled.
type film struct {
	mu      sync.Mutex
	moments []moment
	began   time.Time
}

func (c *cluster) film(lists ...client.ObjectList) *film {
	c.t.Helper()
	f := &film{began: time.Now()}
	c.t.Cleanup(func() {
		if c.t.Failed() {
			c.t.Logf("what was seen:\n%s", f)
		}
	})
	for _, list := range lists {
		w, err := c.Client.Watch(c.t.Context(), list)
		c.must(err)
		c.t.Cleanup(w.Stop)
		go func() {
			for event := range w.ResultChan() {
				object, ok := event.Object.(client.Object)
				if !ok {
					continue
				}
				revision, _ := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
				f.mu.Lock()
				f.moments = append(f.moments, moment{time.Now(), revision, event.Type, object})
				f.mu.Unlock()
			}
		}()
	}
	return f
}

// String shows what became of attachments and fences, for when a test fails.
func (f *film) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lines strings.Builder
	for _, m := range f.moments {
		text := ""
		switch o := m.object.(type) {
		case *storagev1.VolumeAttachment:
			text = fmt.Sprintf("VolumeAttachment of %s to %s, attached: %v", *o.Spec.Source.PersistentVolumeName, o.Spec.NodeName, o.Status.Attached)
		case *csiaddons.NetworkFence:
			text = fmt.Sprintf("NetworkFence of %s, %s: %s %s", o.Labels[fence.NodeLabel], o.Spec.FenceState, o.Status.Result, o.Status.Message)
		case *corev1.Pod:
			text = fmt.Sprintf("pod %s on %s: %s, ready: %v, deleting: %v", o.Name, o.Spec.NodeName, o.Status.Phase, ready(o), o.DeletionTimestamp != nil)
		}
		fmt.Fprintf(&lines, "%8s %d %-8s %s\n", m.at.Sub(f.began).Round(time.Millisecond), m.revision, m.what, text)
	}
	return lines.String()
}

// find returns the first moment that fits.
func (f *film) find(fits func(moment) bool) (moment, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.moments, fits)
	if i < 0 {
		return moment{}, false
	}
	return f.moments[i], true
}

func (f *film) wait(c *cluster, what string, within time.Duration, fits func(moment) bool) moment {
	c.t.Helper()
	var m moment
	c.eventually(what, within, func() error {
		var ok bool
		if m, ok = f.find(fits); !ok {
			return fmt.Errorf("not seen")
		}
		return nil
	})
	return m
}

// attachedTo fits the creation of an attachment of a volume to any of the nodes.
func attachedTo(volume string, nodes ...string) func(moment) bool {
	return func(m moment) bool {
		va, ok := m.object.(*storagev1.VolumeAttachment)
		return ok && m.what == watch.Added && va.Spec.Source.PersistentVolumeName != nil && *va.Spec.Source.PersistentVolumeName == volume && slices.Contains(nodes, va.Spec.NodeName)
	}
}

// detachedFrom fits the end of an attachment.
func detachedFrom(volume, node string) func(moment) bool {
	return func(m moment) bool {
		va, ok := m.object.(*storagev1.VolumeAttachment)
		return ok && m.what == watch.Deleted && va.Spec.Source.PersistentVolumeName != nil && *va.Spec.Source.PersistentVolumeName == volume && va.Spec.NodeName == node
	}
}

// fencedOn fits the confirmation of a fence of a node.
func fencedOn(node string) func(moment) bool {
	return func(m moment) bool {
		n, ok := m.object.(*csiaddons.NetworkFence)
		return ok && n.Labels[fence.NodeLabel] == node && n.Spec.FenceState == csiaddons.Fenced && n.Status.Message == "fencing operation successful"
	}
}

// other of two nodes.
func (d database) other(node string) string {
	if d.nodes[0] == node {
		return d.nodes[1]
	}
	return d.nodes[0]
}

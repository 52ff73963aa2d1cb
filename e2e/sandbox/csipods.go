package sandbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/eventually"
)

var errNotConnected = errors.New("not connected")

// csiAddonsGroup is csi-addons' API.
var csiAddonsGroup = schema.GroupVersion{Group: "csiaddons.openshift.io", Version: "v1alpha1"}

// createDriver makes the workloads that ceph-csi's operator does for a driver.
func (a *CSIAddons) createDriver(ctx context.Context, d CSIAddonsDriver) error {
	nodes := slices.Sorted(maps.Keys(d.Nodes))
	objects := []client.Object{a.controllerDeployment(d)}
	a.addPlugin(d, "")
	if len(nodes) > 0 {
		objects = append(objects, a.nodeDaemonSet(d, nodes))
	}
	for _, node := range nodes {
		a.addPlugin(d, node)
	}
	for _, o := range objects {
		if err := a.sandbox.Client.Create(ctx, o); err != nil {
			return fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
		}
	}
	return nil
}

// addPlugin gives it a socket of a short path: there is a limit.
func (a *CSIAddons) addPlugin(d CSIAddonsDriver, node string) {
	socket := filepath.Join(a.sockets, strconv.Itoa(len(a.plugins)))
	a.plugins = append(a.plugins, &csiPlugin{driver: d, node: node, socket: socket})
}

func (a *CSIAddons) controllerDeployment(d CSIAddonsDriver) *appsv1.Deployment {
	name := d.Name + "-ctrlplugin"
	template := csiPodTemplate(name, "csi-provisioner")
	if d.ControllerNode != "" {
		template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: d.ControllerNode}
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template,
		},
	}
}

func (a *CSIAddons) nodeDaemonSet(d CSIAddonsDriver, nodes []string) *appsv1.DaemonSet {
	name := d.Name + "-nodeplugin"
	template := csiPodTemplate(name, "driver-registrar")
	template.Spec.HostNetwork = true // as ceph-csi's is, which mounts by the host's kernel
	template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: nodes}},
		}}},
	}}
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: name},
		Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template},
	}
}

func csiPodTemplate(app, sidecar string) corev1.PodTemplateSpec {
	var containers []corev1.Container
	for _, name := range []string{"csi-plugin", sidecar, "csi-addons"} {
		containers = append(containers, corev1.Container{Name: name, Image: "simulated/" + name})
	}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: containers},
	}
}

// waitPod waits for the plugin's pod to run. One that is going is none: its
// Deployment makes another.
func (a *CSIAddons) waitPod(ctx context.Context, p *csiPlugin) (*corev1.Pod, error) {
	app := p.driver.Name + "-nodeplugin"
	if p.controller() {
		app = p.driver.Name + "-ctrlplugin"
	}
	var found *corev1.Pod
	err := eventually.Until(ctx, "the pod of "+p.name(), connectTimeout, func() error {
		var pods corev1.PodList
		if err := a.sandbox.Client.List(ctx, &pods, client.InNamespace(a.Namespace), client.MatchingLabels{"app": app}); err != nil {
			return err
		}
		for i, pod := range pods.Items {
			if (p.controller() || pod.Spec.NodeName == p.node) && pod.DeletionTimestamp == nil && pod.Status.PodIP != "" && IsReady(&pod) {
				found = &pods.Items[i]
				return nil
			}
		}
		return fmt.Errorf("none of %d is Ready", len(pods.Items))
	})
	return found, err
}

// csiAddonsNodeName follows generateName in csi-addons' sidecar.
func csiAddonsNodeName(p *csiPlugin, pod *corev1.Pod) string {
	owner := "daemonset-" + p.driver.Name + "-nodeplugin"
	if p.controller() {
		owner = "deployment-" + p.driver.Name + "-ctrlplugin"
	}
	return strings.Join([]string{pod.Spec.NodeName, pod.Namespace, owner}, "-")
}

// Node reads the CSIAddonsNode of a driver's plugin on a node; of the one that
// fences, if node is empty.
func (a *CSIAddons) Node(ctx context.Context, driver, node string) (*unstructured.Unstructured, error) {
	for _, p := range a.plugins {
		if p.driver.Name == driver && p.node == node {
			return a.read(ctx, csiAddonsGroup.WithKind("CSIAddonsNode"), p.object)
		}
	}
	return nil, errNoPlugin
}

func (a *CSIAddons) read(ctx context.Context, kind schema.GroupVersionKind, name string) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	if err := a.sandbox.Client.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: name}, o); err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kind.Kind, name, err)
	}
	return o, nil
}

// waitConnected waits until the manager is connected to these, and could fence by
// those of them that do.
func (a *CSIAddons) waitConnected(ctx context.Context, plugins []*csiPlugin) error {
	for _, p := range plugins {
		err := p.sidecar.Until(ctx, connectTimeout, func() error { return a.connected(ctx, p) })
		if err != nil {
			return fmt.Errorf("%w\n%s", err, a.manager.tail())
		}
	}
	return nil
}

// connected: csi-addons' manager is, to the plugin's sidecar.
func (a *CSIAddons) connected(ctx context.Context, p *csiPlugin) error {
	o, err := a.read(ctx, csiAddonsGroup.WithKind("CSIAddonsNode"), p.object)
	if err != nil {
		return err
	}
	if state := nestedText(o, "status", "state"); state != "Connected" {
		return fmt.Errorf("%s is %q: %w", p.object, state, errNotConnected)
	}
	if !p.controller() {
		return nil
	}
	lease, err := a.read(ctx, coordinationv1.SchemeGroupVersion.WithKind("Lease"), leaseName(p.driver.Name)+"-csi-addons")
	if err != nil {
		return err
	}
	if holder := nestedText(lease, "spec", "holderIdentity"); holder != leaseName(p.pod) {
		return fmt.Errorf("%s fences for %s, not %s: %w", holder, p.driver.Name, p.pod, errNotConnected)
	}
	return nil
}

// leaseName follows NormalizeLeaseName in csi-addons, for what the names here have.
func leaseName(name string) string { return strings.ReplaceAll(name, ".", "-") }

// nestedText returns a string of an object; empty if there is none.
func nestedText(o *unstructured.Unstructured, fields ...string) string {
	text, _, _ := unstructured.NestedString(o.Object, fields...)
	return text
}

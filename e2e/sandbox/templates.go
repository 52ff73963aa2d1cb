package sandbox

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// EngineImageDaemonSet installs the engine's binary on every node.
const EngineImageDaemonSet = "engine-image-" + engineImageName

const (
	engineImage     = "longhornio/longhorn-engine:v1.7.0"
	engineImageName = "ei-04c05bf8" // by GetEngineImageChecksumName
)

// csiDeployments are the sidecars of the CSI driver, by name, and their images.
func csiDeployments() map[string]string {
	return map[string]string{
		"csi-attacher": "longhornio/csi-attacher:v4.4.2", "csi-provisioner": "longhornio/csi-provisioner:v3.6.2",
		"csi-resizer": "longhornio/csi-resizer:v1.9.2", "csi-snapshotter": "longhornio/csi-snapshotter:v6.3.2",
	}
}

// createTemplates makes what longhorn-manager deploys beside the CSI plugin: the
// sidecars (csi/deployment_util.go getCommonDeployment) and the engine image.
func (l Longhorn) createTemplates(ctx context.Context) error {
	for name, image := range csiDeployments() {
		if err := l.createTemplate(ctx, csiDeployment(l.namespace, name, image)); err != nil {
			return err
		}
	}
	ei := l.object("EngineImage", engineImageName)
	ei.SetLabels(engineImageLabels())
	ei.Object["spec"] = map[string]any{"image": engineImage}
	if err := l.create(ctx, ei); err != nil {
		return err
	}
	return l.createTemplate(ctx, engineImageDaemonSet(l.namespace))
}

// createTemplate fills in what all get from the settings.
func (l Longhorn) createTemplate(ctx context.Context, o client.Object) error {
	values, err := l.buildSettings(ctx)
	if err != nil {
		return err
	}
	var template *corev1.PodTemplateSpec
	switch o := o.(type) {
	case *appsv1.Deployment:
		template = &o.Spec.Template
	case *appsv1.DaemonSet:
		template = &o.Spec.Template
	}
	pod := &corev1.Pod{Spec: template.Spec}
	if err := values.build(pod); err != nil {
		return err
	}
	template.Spec = pod.Spec
	o.SetAnnotations(pod.Annotations) // here, not in the template, is which tolerations are Longhorn's
	return l.create(ctx, o)
}

func csiDeployment(namespace, name, image string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{"app": name, "longhorn.io/managed-by": "longhorn-manager"},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](3), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					ServiceAccountName: "longhorn-service-account",
					Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
						PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: corev1.PodAffinityTerm{
							LabelSelector: &metav1.LabelSelector{MatchLabels: labels}, TopologyKey: corev1.LabelHostname,
						}}},
					}},
					Containers: []corev1.Container{{
						Name: name, Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
						Args: []string{"--v=2", "--csi-address=$(ADDRESS)", "--timeout=1m50s", "--leader-election"},
						Env:  []corev1.EnvVar{{Name: "ADDRESS", Value: "/csi/csi.sock"}},
					}},
				},
			},
		},
	}
}

func engineImageLabels() map[string]string {
	return map[string]string{
		"longhorn.io/managed-by": "longhorn-manager", "longhorn.io/component": "engine-image", "longhorn.io/engine-image": engineImageName,
	}
}

// engineImageDaemonSet follows createEngineImageDaemonSetSpec.
func engineImageDaemonSet(namespace string) *appsv1.DaemonSet {
	labels := map[string]string{"longhorn.io/component": "engine-image", "longhorn.io/engine-image": engineImageName}
	command := func(script string) *corev1.Probe {
		return probe(corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", script}}})
	}
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: EngineImageDaemonSet, Labels: engineImageLabels()},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{
				Type:          appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: ptr.To(intstr.FromString("100%"))},
			},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Name: EngineImageDaemonSet, Labels: labels},
				Spec: corev1.PodSpec{
					ServiceAccountName: "longhorn-service-account",
					Containers: []corev1.Container{{
						Name: EngineImageDaemonSet, Image: engineImage, ImagePullPolicy: corev1.PullIfNotPresent,
						Command:         []string{"/bin/bash"},
						Args:            []string{"-c", "cp -p /usr/local/bin/longhorn /data/ && trap 'rm /data/longhorn*' EXIT && sleep infinity"},
						ReadinessProbe:  command("ls /data/longhorn && /data/longhorn version --client-only"),
						LivenessProbe:   command("/data/longhorn version --client-only"),
						SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)},
					}},
				},
			},
		},
	}
}

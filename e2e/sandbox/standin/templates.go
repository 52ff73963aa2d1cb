package standin

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox/standin/release"
)

// EngineImageDaemonSet installs the engine's binary on every node.
const EngineImageDaemonSet = "engine-image-" + engineImageName

const (
	engineImage     = "longhornio/longhorn-engine:" + release.Default
	engineImageName = "ei-51cc7b9c" // by GetEngineImageChecksumName
)

// sidecar of the CSI driver.
type sidecar struct {
	name, image string
	// args beside those that all have.
	args []string
}

// sidecars of csi/deployment.go.
func sidecars() []sidecar {
	return []sidecar{
		{name: "csi-attacher", image: "longhornio/csi-attacher:v4.4.2"},
		{name: "csi-provisioner", image: "longhornio/csi-provisioner:v3.6.2", args: []string{"--default-fstype=ext4"}},
		{name: "csi-resizer", image: "longhornio/csi-resizer:v1.9.2", args: []string{"--leader-election-namespace=$(POD_NAMESPACE)"}},
		{name: "csi-snapshotter", image: "longhornio/csi-snapshotter:v6.3.2"},
	}
}

// deploySidecars deploys those of the CSI driver, in the order of app/driver.go.
func (l Longhorn) deploySidecars(ctx context.Context) error {
	values, err := l.currentSettings(ctx)
	if err != nil {
		return err
	}
	for _, s := range sidecars() {
		d := s.deployment(l.namespace)
		if err := values.buildTemplate(d, &d.Spec.Template); err != nil {
			return err
		}
		if err := l.deploy(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// deployEngineImage makes what controller/engine_image_controller.go does.
func (l Longhorn) deployEngineImage(ctx context.Context) error {
	values, err := l.currentSettings(ctx)
	if err != nil {
		return err
	}
	ei := l.object("EngineImage", engineImageName)
	ei.SetLabels(engineImageLabels())
	ei.Object["spec"] = map[string]any{"image": engineImage}
	if err := l.create(ctx, ei); err != nil {
		return err
	}
	if err := l.client.Get(ctx, client.ObjectKeyFromObject(ei), ei); err != nil {
		return fmt.Errorf("reading EngineImage %s: %w", ei.GetName(), err)
	}
	ds := engineImageDaemonSet(ei)
	if err := values.buildTemplate(ds, &ds.Spec.Template); err != nil {
		return err
	}
	return l.create(ctx, ds)
}

// deployment follows getCommonDeployment in csi/deployment_util.go.
func (s sidecar) deployment(namespace string) *appsv1.Deployment {
	labels := map[string]string{"app": s.name}
	args := []string{"--v=2", "--csi-address=$(ADDRESS)", "--timeout=1m50s", "--leader-election", "--leader-election-namespace=$(POD_NAMESPACE)"}
	args = append(append(args, s.args...), "--kube-api-qps=50", "--kube-api-burst=100")
	if s.name == "csi-resizer" {
		args = append(args, "--handle-volume-inuse-error=false")
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: s.name, Labels: map[string]string{"app": s.name, "longhorn.io/managed-by": "longhorn-manager"},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](3), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					ServiceAccountName: "longhorn-service-account", Affinity: apart(s.name),
					Containers: []corev1.Container{{
						Name: s.name, Image: s.image, ImagePullPolicy: corev1.PullIfNotPresent, Args: args,
						Env: []corev1.EnvVar{
							{Name: "ADDRESS", Value: "/csi/csi.sock"},
							{Name: "POD_NAMESPACE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}},
						},
						VolumeMounts: []corev1.VolumeMount{{Name: "socket-dir", MountPath: "/csi/"}},
					}},
					Volumes: []corev1.Volume{{Name: "socket-dir", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{
						Path: "/var/lib/kubelet/plugins/driver.longhorn.io", Type: ptr.To(corev1.HostPathDirectoryOrCreate),
					}}}},
				},
			},
		},
	}
}

// apart spreads the pods of an app over nodes.
func apart(app string) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: corev1.PodAffinityTerm{
			LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{app}},
			}},
			TopologyKey: corev1.LabelHostname,
		}}},
	}}
}

func engineImageLabels() map[string]string {
	return map[string]string{
		"longhorn.io/managed-by": "longhorn-manager", "longhorn.io/component": "engine-image", "longhorn.io/engine-image": engineImageName,
	}
}

// engineImageDaemonSet follows createEngineImageDaemonSetSpec in controller/engine_image_controller.go.
func engineImageDaemonSet(ei *unstructured.Unstructured) *appsv1.DaemonSet {
	owners := blockingOwner(ei)
	owners[0].Controller = nil
	mounts, volumes := hostMounts(hostMount{
		name: "data", path: "/data/", host: "/var/lib/longhorn/engine-binaries/" + canonicalImage(engineImage),
	})
	labels := map[string]string{"longhorn.io/component": "engine-image", "longhorn.io/engine-image": engineImageName}
	command := func(script string) *corev1.Probe {
		return probe(corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", script}}})
	}
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: ei.GetNamespace(), Name: EngineImageDaemonSet, Labels: engineImageLabels(), OwnerReferences: owners},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{
				Type:          appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: ptr.To(intstr.FromString("100%"))},
			},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Name: EngineImageDaemonSet, Labels: labels, OwnerReferences: owners},
				Spec: corev1.PodSpec{
					ServiceAccountName: "longhorn-service-account",
					Containers: []corev1.Container{{
						Name: EngineImageDaemonSet, Image: engineImage, ImagePullPolicy: corev1.PullIfNotPresent,
						Command:         []string{"/bin/bash"},
						Args:            []string{"-c", installEngine},
						ReadinessProbe:  command("ls /data/longhorn && /data/longhorn version --client-only"),
						LivenessProbe:   command("/data/longhorn version --client-only"),
						SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)},
						VolumeMounts:    mounts,
					}},
					Volumes: volumes,
				},
			},
		},
	}
}

// installEngine is what the engine image's container runs.
const installEngine = "diff /usr/local/bin/longhorn /data/longhorn > /dev/null 2>&1; if [ $? -ne 0 ]; then cp -p /usr/local/bin/longhorn /data/ && echo installed; fi" +
	" && trap 'rm /data/longhorn* && echo cleaned up' EXIT && sleep infinity"

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
}

// sidecars of csi/deployment.go.
func sidecars() []sidecar {
	return []sidecar{
		{name: "csi-attacher", image: "longhornio/csi-attacher:v4.4.2"},
		{name: "csi-provisioner", image: "longhornio/csi-provisioner:v3.6.2"},
		{name: "csi-resizer", image: "longhornio/csi-resizer:v1.9.2"},
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

// deployment follows getCommonDeployment in csi/deployment_util.go, in what settings decide.
func (s sidecar) deployment(namespace string) *appsv1.Deployment {
	labels := map[string]string{"app": s.name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: s.name, Labels: map[string]string{"app": s.name, "longhorn.io/managed-by": "longhorn-manager"},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](3), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					ServiceAccountName: "longhorn-service-account", Containers: []corev1.Container{{Name: s.name, Image: s.image}},
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

// engineImageDaemonSet follows createEngineImageDaemonSetSpec in controller/engine_image_controller.go, in what settings decide.
func engineImageDaemonSet(ei *unstructured.Unstructured) *appsv1.DaemonSet {
	owners := blockingOwner(ei)
	owners[0].Controller = nil
	labels := map[string]string{"longhorn.io/component": "engine-image", "longhorn.io/engine-image": engineImageName}
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
					Containers:         []corev1.Container{{Name: EngineImageDaemonSet, Image: engineImage, LivenessProbe: livenessProbe()}},
				},
			},
		},
	}
}

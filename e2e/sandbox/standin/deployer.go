package standin

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-io/fairlead/e2e/eventually"
	"github.com/fairlead-io/fairlead/e2e/sandbox/standin/release"
	"github.com/fairlead-io/fairlead/internal/longhorn"
)

// Longhorn's longhorn-driver-deployer, as in app/driver.go and csi/deployment_util.go of v1.7.2, runs once whenever its
// Deployment restarts. It builds by the values of the settings at that moment, whether they are applied or not.

// Annotations by which the deployer recognises what it has deployed.
const (
	commitAnnotation  = "driver.longhorn.io/git-commit"
	versionAnnotation = "driver.longhorn.io/version"
)

// deployPlugin deploys the CSI driver's object and the CSI plugin's DaemonSet.
func (l Longhorn) deployPlugin(ctx context.Context) error {
	driver := &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: longhorn.DefaultNames().Driver}, Spec: storagev1.CSIDriverSpec{PodInfoOnMount: ptr.To(true)},
	}
	if err := l.deploy(ctx, driver); err != nil {
		return err
	}
	ds, err := l.pluginDaemonSet(ctx)
	if err != nil {
		return err
	}
	return l.deploy(ctx, ds)
}

// UpgradePlugin deploys the CSI plugin as another version of Longhorn does: the DaemonSet is deleted and created.
func (l Longhorn) UpgradePlugin(ctx context.Context, version string) error {
	release, err := release.Find(version)
	if err != nil {
		return err
	}
	l.release = release
	return l.deployPlugin(ctx)
}

//go:embed csiplugin.yaml
var pluginManifest []byte

func (l Longhorn) pluginDaemonSet(ctx context.Context) (*appsv1.DaemonSet, error) {
	values, err := l.currentSettings(ctx)
	if err != nil {
		return nil, err
	}
	ds := &appsv1.DaemonSet{}
	if err := yaml.UnmarshalStrict(pluginManifest, ds); err != nil {
		return nil, fmt.Errorf("reading the CSI plugin: %w", err)
	}
	template := &ds.Spec.Template
	template.Spec.Containers[2].Image = l.release.Image("longhorn-manager")
	template.Annotations = release.WithNetwork(nil, l.release.RWXAnnotation(values))
	return ds, values.buildTemplate(ds, template)
}

// deploy leaves alone what has the version of this deployer, and replaces what has another one.
func (l Longhorn) deploy(ctx context.Context, o client.Object) error {
	annotations := maps.Clone(o.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[commitAnnotation], annotations[versionAnnotation] = "", l.release.Version
	o.SetAnnotations(annotations)
	existing, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("deploying %T: it is no object", o)
	}
	err := l.client.Get(ctx, client.ObjectKeyFromObject(o), existing)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading %T %s: %w", o, o.GetName(), err)
	}
	if err == nil {
		if existing.GetAnnotations()[versionAnnotation] == l.release.Version {
			return nil
		}
		if err := l.remove(ctx, existing); err != nil {
			return err
		}
	}
	return l.create(ctx, o)
}

// remove an object with all its pods, and wait until it is gone.
func (l Longhorn) remove(ctx context.Context, o client.Object) error {
	foreground := client.PropagationPolicy(metav1.DeletePropagationForeground)
	if err := client.IgnoreNotFound(l.client.Delete(ctx, o, foreground)); err != nil {
		return fmt.Errorf("deleting %T %s: %w", o, o.GetName(), err)
	}
	return eventually.Until(ctx, o.GetName()+" to go", 3*time.Minute, func() error {
		err := l.client.Get(ctx, client.ObjectKeyFromObject(o), o)
		if err == nil {
			err = fmt.Errorf("the %T is there", o)
		}
		return client.IgnoreNotFound(err)
	})
}

// buildTemplate gives a template what all get from the settings. The annotation is on the object, not on its template.
func (v settingValues) buildTemplate(o client.Object, template *corev1.PodTemplateSpec) error {
	pod := &corev1.Pod{Spec: template.Spec}
	if err := v.build(pod); err != nil {
		return err
	}
	template.Spec = pod.Spec
	annotations := maps.Clone(o.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, pod.Annotations)
	o.SetAnnotations(annotations)
	return nil
}

package standin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox/changes"
	"github.com/fairlead-io/fairlead/e2e/sandbox/standin/release"
	"github.com/fairlead-io/fairlead/internal/longhorn"
)

// SyncSettings does what controller/setting_controller.go of Longhorn v1.7.2 does, until the context ends: each event of
// a setting, whoever made it, has that setting applied if its gate is open now, and `applied` written. A setting whose
// gate is closed is tried three times more at once and then dropped: volumes that are detached wake nothing.
func (l Longhorn) SyncSettings(ctx context.Context) {
	changes.Each(ctx, l.client, &longhorn.SettingList{}, func(event watch.Event) {
		if setting, ok := event.Object.(*longhorn.Setting); ok {
			l.syncWithRetries(ctx, setting.Name)
		}
	}, client.InNamespace(l.namespace))
}

// syncWithRetries follows handleErr: maxRetries is 3, and the queue's delay begins at 5 ms and doubles.
func (l Longhorn) syncWithRetries(ctx context.Context, name string) {
	for delay, try := 5*time.Millisecond, 0; try <= 3 && ctx.Err() == nil; delay, try = delay*2, try+1 {
		err := l.syncSetting(ctx, name)
		if writeErr := l.writeApplied(ctx, name, err == nil); writeErr != nil && ctx.Err() == nil {
			fmt.Fprintf(l.out, "in place of Longhorn's setting controller: %v\n", writeErr)
		}
		if err == nil {
			return
		}
		time.Sleep(delay)
	}
}

// writeApplied follows the deferred function of syncSetting: what counts is that updates were issued.
func (l Longhorn) writeApplied(ctx context.Context, name string, applied bool) error {
	var setting longhorn.Setting
	if err := l.client.Get(ctx, client.ObjectKey{Namespace: l.namespace, Name: name}, &setting); err != nil {
		return client.IgnoreNotFound(err)
	}
	if setting.Status.Applied == applied {
		return nil
	}
	return l.status(ctx, "Setting", name, map[string]any{"applied": applied})
}

var errGate = errors.New("there are attached volumes: it will be eventually applied")

// syncSetting follows syncDangerZoneSettingsForManagedComponents.
func (l Longhorn) syncSetting(ctx context.Context, name string) error {
	switch name {
	case release.StorageNetwork:
		return l.updateNetworks(ctx, l.volumesDetached)
	case l.release.RWXSetting():
		return l.updateNetworks(ctx, l.rwxVolumesDetached)
	case "taint-toleration", "system-managed-components-node-selector", "priority-class":
		return l.updateComponents(ctx, name)
	}
	return nil // data engines and their CPU are followed in RunComponents
}

// updateNetworks follows updateCNI. Each of the two network settings brings in line what belongs to the other one too,
// by its own gate: so instance managers in use are deleted for the RWX setting.
func (l Longhorn) updateNetworks(ctx context.Context, gate func(context.Context) (bool, error)) error {
	values, err := l.currentSettings(ctx)
	if err != nil {
		return err
	}
	var ds appsv1.DaemonSet
	if err := l.client.Get(ctx, client.ObjectKey{Namespace: longhorn.DefaultNames().Namespace, Name: longhorn.DefaultNames().ClientDaemonSet}, &ds); err != nil {
		return fmt.Errorf("reading the CSI plugin's DaemonSet: %w", err) // so nothing is applied until the driver is deployed
	}
	rwx, wanted := l.release.RWXAnnotation(values), release.CNIAnnotation(values[release.StorageNetwork], release.StorageInterface)
	clientsDiffer := ds.Spec.Template.Annotations[release.NetworksAnnotation] != rwx[release.NetworksAnnotation]
	pods, err := l.podsOf(ctx, "instance-manager", "backing-image-manager")
	if err != nil {
		return err
	}
	pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool {
		return p.Annotations[release.NetworksAnnotation] == wanted[release.NetworksAnnotation]
	})
	if !clientsDiffer && len(pods) == 0 {
		return nil
	}
	if err := pass(ctx, gate); err != nil {
		return err
	}
	if clientsDiffer {
		ds.Spec.Template.Annotations = release.WithNetwork(ds.Spec.Template.Annotations, rwx)
		if err := l.client.Update(ctx, &ds); err != nil {
			return fmt.Errorf("updating the CSI plugin's DaemonSet: %w", err)
		}
	}
	return l.deletePods(ctx, pods)
}

func pass(ctx context.Context, gate func(context.Context) (bool, error)) error {
	open, err := gate(ctx)
	if err == nil && !open {
		err = errGate
	}
	return err
}

// volumesDetached is the gate of all volumes.
func (l Longhorn) volumesDetached(ctx context.Context) (bool, error) {
	if l.release.GatesByState {
		volumes, err := l.list(ctx, "Volume")
		attached := slices.ContainsFunc(volumes, func(v unstructured.Unstructured) bool { return text(&v, "status", "state") != "detached" })
		return !attached, err
	}
	managers, err := l.list(ctx, "InstanceManager")
	used := slices.ContainsFunc(managers, func(m unstructured.Unstructured) bool {
		engines, _, _ := unstructured.NestedMap(m.Object, "status", "instanceEngines")
		return len(engines) > 0
	})
	return !used, err
}

// rwxVolumesDetached is the gate of RWX volumes: it counts tickets, so a volume that is about to be attached blocks too.
func (l Longhorn) rwxVolumesDetached(ctx context.Context) (bool, error) {
	volumes, err := l.list(ctx, "Volume")
	if err != nil {
		return false, err
	}
	attachments, err := l.list(ctx, "VolumeAttachment")
	if err != nil {
		return false, err
	}
	asked := map[string]bool{}
	for i := range attachments {
		asked[attachments[i].GetName()] = hasTickets(&attachments[i])
	}
	for i := range volumes {
		v := &volumes[i]
		migratable, _, _ := unstructured.NestedBool(v.Object, "spec", "migratable")
		if text(v, "spec", "accessMode") == "rwx" && !(migratable && l.release.SkipsMigratable) && asked[v.GetName()] {
			return false, nil
		}
	}
	return true, nil
}

// podsOf are the pods of some of Longhorn's components.
func (l Longhorn) podsOf(ctx context.Context, components ...string) ([]corev1.Pod, error) {
	var all []corev1.Pod
	for _, component := range components {
		var list corev1.PodList
		labels := client.MatchingLabels{"longhorn.io/managed-by": "longhorn-manager", "longhorn.io/component": component}
		if err := l.client.List(ctx, &list, client.InNamespace(l.namespace), labels); err != nil {
			return nil, fmt.Errorf("listing pods of component %s: %w", component, err)
		}
		all = append(all, list.Items...)
	}
	return all, nil
}

func (l Longhorn) deletePods(ctx context.Context, pods []corev1.Pod) error {
	for i := range pods {
		if err := client.IgnoreNotFound(l.client.Delete(ctx, &pods[i])); err != nil {
			return fmt.Errorf("deleting pod %s: %w", pods[i].Name, err)
		}
	}
	return nil
}

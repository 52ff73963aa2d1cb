package standin

import (
	"context"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox/changes"
	"github.com/fairlead-io/fairlead/e2e/sandbox/standin/release"
	"github.com/fairlead-io/fairlead/internal/longhorn"
)

// A shared volume is served as controller/share_manager_controller.go of Longhorn v1.7.2 serves it. All is built by
// the values of the network settings, whether they are applied or not.

// startSharing follows createShareManagerPod: the Service first, then the pod. The endpoint is written when the pod runs.
func (l Longhorn) startSharing(ctx context.Context, sm *unstructured.Unstructured) error {
	values, err := l.currentSettings(ctx)
	if err != nil {
		return err
	}
	err = l.client.Get(ctx, client.ObjectKey{Namespace: l.namespace, Name: "share-manager-" + sm.GetName()}, &corev1.Pod{})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the server of %s: %w", sm.GetName(), err)
	}
	if err != nil {
		if err := l.createServer(ctx, sm, values); err != nil {
			return err
		}
	}
	pod, err := l.waitRunning(ctx, "share-manager-"+sm.GetName())
	if err != nil {
		return err
	}
	if err := l.takeServerTicket(ctx, sm.GetName(), pod.Spec.NodeName); err != nil {
		return err
	}
	return l.writeEndpoint(ctx, sm, values)
}

func (l Longhorn) createServer(ctx context.Context, sm *unstructured.Unstructured, values settingValues) error {
	if err := l.cleanUpService(ctx, sm, values); err != nil {
		return err
	}
	if err := l.create(ctx, l.shareService(sm, values)); err != nil {
		return err
	}
	if err := l.create(ctx, shareEndpoints(sm)); err != nil {
		return err
	}
	pod, err := l.sharePod(sm, values)
	if err != nil {
		return err
	}
	return l.create(ctx, pod)
}

// cleanUpService follows canCleanupService: a Service of the other kind goes once both network settings are applied.
func (l Longhorn) cleanUpService(ctx context.Context, sm *unstructured.Unstructured, values settingValues) error {
	var service corev1.Service
	if err := l.client.Get(ctx, client.ObjectKeyFromObject(sm), &service); err != nil {
		return client.IgnoreNotFound(err)
	}
	for _, name := range []string{release.StorageNetwork, l.release.RWXSetting()} {
		var setting longhorn.Setting
		if err := l.client.Get(ctx, client.ObjectKey{Namespace: l.namespace, Name: name}, &setting); err != nil {
			return fmt.Errorf("reading setting %s: %w", name, err)
		}
		if !setting.Status.Applied {
			return nil
		}
	}
	if headless := service.Spec.ClusterIP == corev1.ClusterIPNone; headless == (l.release.RWXNetwork(values) != "") {
		return nil
	}
	if err := client.IgnoreNotFound(l.client.Delete(ctx, &service)); err != nil {
		return fmt.Errorf("deleting Service %s: %w", service.Name, err)
	}
	return nil
}

// shareService follows createServiceManifest.
func (l Longhorn) shareService(sm *unstructured.Unstructured, values settingValues) *corev1.Service {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: sm.GetNamespace(), Name: sm.GetName(), Labels: shareLabels(sm.GetName()), OwnerReferences: owner(sm, false),
		},
		Spec: corev1.ServiceSpec{
			Type:  corev1.ServiceTypeClusterIP,
			Ports: []corev1.ServicePort{{Name: "nfs", Port: 2049, Protocol: corev1.ProtocolTCP}},
		},
	}
	if l.release.RWXNetwork(values) != "" {
		service.Spec.ClusterIP = corev1.ClusterIPNone
	} else {
		service.Spec.Selector = shareLabels(sm.GetName())
	}
	return service
}

func shareLabels(volume string) map[string]string {
	return map[string]string{"longhorn.io/managed-by": "longhorn-manager", "longhorn.io/share-manager": volume}
}

// serverLabels follows GetShareManagerLabels in types/types.go.
func serverLabels(volume, image string) map[string]string {
	labels := shareLabels(volume)
	labels["longhorn.io/component"] = "share-manager"
	labels["longhorn.io/share-manager-image"] = "smi-" + checksum(canonicalImage(image))[:8]
	return labels
}

func canonicalImage(image string) string {
	return strings.NewReplacer(":", "-", "/", "-").Replace(image)
}

// sharePod follows createPodManifest in what settings decide, and createShareManagerPod for its network.
func (l Longhorn) sharePod(sm *unstructured.Unstructured, values settingValues) (*corev1.Pod, error) {
	image := l.release.Image("longhorn-share-manager")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: sm.GetNamespace(), Name: "share-manager-" + sm.GetName(), OwnerReferences: owner(sm, true),
			Labels: serverLabels(sm.GetName(), image),
		},
		Spec: corev1.PodSpec{
			ServiceAccountName: "longhorn-service-account", RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "share-manager", Image: image}},
		},
	}
	if err := values.build(pod); err != nil {
		return nil, err
	}
	maps.Copy(pod.Annotations, l.release.RWXAnnotation(values))
	return pod, nil
}

// RunShareManagers keeps the endpoints of share managers that run as syncShareManagerEndpoint does, until the context ends:
// when the value of the setting changes, endpoints of attached volumes change too.
func (l Longhorn) RunShareManagers(ctx context.Context) {
	changes.Follow(ctx, l.client, func() {
		if err := l.syncShareManagers(ctx); err != nil && ctx.Err() == nil {
			fmt.Fprintf(l.out, "in place of Longhorn's share manager controller: %v\n", err)
		}
	}, []client.ObjectList{listOf("Setting"), listOf("ShareManager")}, client.InNamespace(l.namespace))
}

func (l Longhorn) syncShareManagers(ctx context.Context) error {
	values, err := l.currentSettings(ctx)
	if err != nil {
		return err
	}
	shareManagers, err := l.list(ctx, "ShareManager")
	if err != nil {
		return err
	}
	for i := range shareManagers {
		sm := &shareManagers[i]
		if text(sm, "status", "state") != stateRunning {
			continue
		}
		endpoint, err := l.endpoint(ctx, sm, values)
		if err != nil {
			return err
		}
		if endpoint == text(sm, "status", "endpoint") {
			continue
		}
		// The share manager may have been stopped meanwhile: then this write fails.
		err = l.updateStatus(ctx, sm, map[string]any{"endpoint": endpoint})
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

func (l Longhorn) writeEndpoint(ctx context.Context, sm *unstructured.Unstructured, values settingValues) error {
	endpoint, err := l.endpoint(ctx, sm, values)
	if err != nil {
		return err
	}
	return l.status(ctx, "ShareManager", sm.GetName(), map[string]any{"state": stateRunning, "endpoint": endpoint})
}

// endpoint follows syncShareManagerEndpoint: by the value of the setting, not by the Service, and always in cluster.local.
func (l Longhorn) endpoint(ctx context.Context, sm *unstructured.Unstructured, values settingValues) (string, error) {
	var service corev1.Service
	err := l.client.Get(ctx, client.ObjectKeyFromObject(sm), &service)
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("reading the Service of %s: %w", sm.GetName(), err)
	case l.release.RWXNetwork(values) != "":
		return fmt.Sprintf("nfs://%[1]s.%[2]s.svc.cluster.local/%[1]s", sm.GetName(), sm.GetNamespace()), nil
	case service.Spec.IPFamilies[0] == corev1.IPv6Protocol:
		return fmt.Sprintf("nfs://[%s]/%s", service.Spec.ClusterIP, sm.GetName()), nil
	}
	return fmt.Sprintf("nfs://%s/%s", service.Spec.ClusterIP, sm.GetName()), nil
}

// owner of what Longhorn creates, as datastore/longhorn.go writes it.
func owner(o *unstructured.Unstructured, controller bool) []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: longhorn.GroupVersion.String(), Kind: o.GetKind(), Name: o.GetName(), UID: o.GetUID(), Controller: ptr.To(controller),
	}}
}

// blockingOwner is for pods of managers, which a drain may only evict by their owner.
func blockingOwner(o *unstructured.Unstructured) []metav1.OwnerReference {
	owners := owner(o, true)
	owners[0].BlockOwnerDeletion = ptr.To(true)
	return owners
}

package standin

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/eventually"
	"github.com/fairlead-io/fairlead/e2e/sandbox/standin/release"
	"github.com/fairlead-io/fairlead/internal/longhorn"
)

// Longhorn does what longhorn-manager would do with its objects, as far as
// shared volumes, settings and its components go; there is no engine here that
// could store anything. It acts by the account of the real manager.
type Longhorn struct {
	client    client.WithWatch
	namespace string
	release   release.Release
	// restartIdle: idle instance managers are restarted when a setting of their pods changes.
	restartIdle bool
	// out gets the failures of background work.
	out io.Writer
}

// NewLonghorn returns the stand-in for longhorn-manager of a release. It reports to out what fails in the background.
func NewLonghorn(c client.WithWatch, version release.Release, out io.Writer) Longhorn {
	return Longhorn{client: c, namespace: longhorn.DefaultNames().Namespace, release: version, out: out}
}

// SeedSettings leaves the settings as longhorn-manager does, all applied, and deploys the CSI plugin.
func (l Longhorn) SeedSettings(ctx context.Context) error {
	if err := l.seedRelease(ctx); err != nil {
		return err
	}
	if err := l.markSettingsApplied(ctx); err != nil {
		return err
	}
	return l.deployPlugin(ctx)
}

// Volume to create.
type Volume struct {
	Name       string
	Shared     bool
	Migratable bool
	// Claim in namespace default, empty for none.
	Claim string
	// For is a claim that exists and has no volume yet, in place of Claim.
	For *corev1.PersistentVolumeClaim
	// PersistentVolume's name where it is not the volume's, as with one made by hand.
	PersistentVolume string
	// Engine is the data engine; empty is v1.
	Engine string
	// ReplicaNodes have a healthy replica each. None is for tests that look at the volume alone.
	ReplicaNodes []string
}

func (v Volume) engine() string { return cmp.Or(v.Engine, engineV1) }

func (v Volume) replicas() int64 {
	if n := len(v.ReplicaNodes); n > 0 {
		return int64(n)
	}
	return 3
}

func (v Volume) persistentVolume() string { return cmp.Or(v.PersistentVolume, v.Name) }

// CreateVolume creates the Longhorn volume, with ShareManager, PersistentVolume and claim.
func (l Longhorn) CreateVolume(ctx context.Context, v Volume) error {
	mode, k8sMode := "rwo", corev1.ReadWriteOnce
	if v.Shared {
		mode, k8sMode = "rwx", corev1.ReadWriteMany
	}
	volume := l.object("Volume", v.Name)
	volume.Object["spec"] = map[string]any{
		"accessMode": mode, "migratable": v.Migratable, "size": volumeSize, "numberOfReplicas": v.replicas(),
		"frontend": "blockdev", "dataEngine": v.engine(),
	}
	objects := []client.Object{volume, persistentVolume(v, k8sMode)}
	if v.Claim != "" {
		objects = append(objects, claim(v, k8sMode))
	}
	for _, o := range objects {
		if err := l.client.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating %T %s: %w", o, v.Name, err)
		}
	}
	if err := l.createTickets(ctx, volume); err != nil {
		return err
	}
	if v.Shared && !v.Migratable {
		if err := l.createShareManager(ctx, volume); err != nil {
			return err
		}
	}
	if len(v.ReplicaNodes) > 0 {
		if err := l.createInstances(ctx, v); err != nil {
			return err
		}
	}
	return l.status(ctx, "Volume", v.Name, map[string]any{"state": "detached", "robustness": "unknown"})
}

// createShareManager follows createShareManagerForVolume in controller/volume_controller.go.
func (l Longhorn) createShareManager(ctx context.Context, volume *unstructured.Unstructured) error {
	image := l.release.Image("longhorn-share-manager")
	sm := l.object("ShareManager", volume.GetName())
	sm.SetLabels(serverLabels(volume.GetName(), image))
	sm.SetOwnerReferences(volumeOwner(volume))
	sm.Object["spec"] = map[string]any{"image": image}
	if err := l.create(ctx, sm); err != nil {
		return err
	}
	return l.status(ctx, "ShareManager", volume.GetName(), map[string]any{"state": stateStopped, "endpoint": ""})
}

// volumeOwner follows GetOwnerReferencesForVolume in datastore/longhorn.go.
func volumeOwner(volume *unstructured.Unstructured) []metav1.OwnerReference {
	owners := owner(volume, false)
	owners[0].Controller = nil
	return owners
}

func persistentVolume(v Volume, mode corev1.PersistentVolumeAccessMode) *corev1.PersistentVolume {
	attributes := map[string]string{"numberOfReplicas": strconv.FormatInt(v.replicas(), 10)}
	if v.Engine != "" {
		attributes["dataEngine"] = v.Engine
	}
	if v.Migratable {
		attributes["migratable"] = "true"
	}
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: v.persistentVolume()},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes: []corev1.PersistentVolumeAccessMode{mode}, StorageClassName: "longhorn",
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: longhorn.DefaultNames().Driver, VolumeHandle: v.Name, FSType: "ext4", VolumeAttributes: attributes,
			}},
		},
	}
	if v.Claim != "" {
		pv.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: "default", Name: v.Claim}
	}
	if c := v.For; c != nil {
		pv.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: c.Namespace, Name: c.Name, UID: c.UID}
		pv.Spec.StorageClassName = *c.Spec.StorageClassName
		pv.Spec.Capacity = c.Spec.Resources.Requests
	}
	return pv
}

func claim(v Volume, mode corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: v.Claim},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{mode}, VolumeName: v.persistentVolume(), StorageClassName: ptr.To("longhorn"),
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

// Attach does what longhorn-manager does when a volume is attached: a ticket, replicas
// and engine where there are instance managers for them, the state and, for a shared
// volume, Service, server pod and endpoint, in its order. Without workloads, it names the pods that use the volume's claim.
func (l Longhorn) Attach(ctx context.Context, volume, node string, workloads ...string) error {
	if err := l.takeTicket(ctx, volume, node); err != nil {
		return err
	}
	if err := l.startInstances(ctx, volume, node); err != nil {
		return err
	}
	status := map[string]any{"state": "attached", "currentNodeID": node, "robustness": "healthy"}
	if len(workloads) > 0 {
		var list []any
		for _, w := range workloads {
			namespace, pod, _ := strings.Cut(w, "/")
			list = append(list, map[string]any{"podName": pod, "podStatus": "Running"})
			status["kubernetesStatus"] = map[string]any{"namespace": namespace, "pvName": volume, "workloadsStatus": list, "lastPodRefAt": ""}
		}
	}
	if err := l.status(ctx, "Volume", volume, status); err != nil {
		return err
	}
	if len(workloads) == 0 {
		if err := l.nameWorkloads(ctx, volume); err != nil {
			return err
		}
	}
	sm := l.object("ShareManager", volume)
	if err := l.client.Get(ctx, client.ObjectKeyFromObject(sm), sm); err != nil {
		return client.IgnoreNotFound(err) // not a shared volume
	}
	return l.startSharing(ctx, sm)
}

func (l Longhorn) waitRunning(ctx context.Context, name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	return pod, eventually.Until(ctx, "pod "+name, time.Minute, func() error {
		err := l.client.Get(ctx, client.ObjectKey{Namespace: l.namespace, Name: name}, pod)
		switch {
		case apierrors.IsNotFound(err):
			return eventually.Never(err)
		case err == nil && pod.Status.Phase != corev1.PodRunning:
			return errNotReady
		}
		return err
	})
}

// Detach does what longhorn-manager does when a volume is detached.
func (l Longhorn) Detach(ctx context.Context, volume string) error {
	if err := l.returnTickets(ctx, volume); err != nil {
		return err
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "share-manager-" + volume}}
	if err := l.client.Delete(ctx, pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("stopping the server of %s: %w", volume, err)
	}
	err := l.status(ctx, "ShareManager", volume, map[string]any{"state": "stopped", "endpoint": ""})
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err := l.stopInstances(ctx, volume); err != nil {
		return err
	}
	return l.status(ctx, "Volume", volume, map[string]any{
		"state": "detached", "currentNodeID": "", "robustness": "unknown",
		"kubernetesStatus": map[string]any{"lastPodRefAt": time.Now().UTC().Format(time.RFC3339)},
	})
}

// RequestRemount does what longhorn-manager does when a volume was detached
// under its workloads and is attached again.
func (l Longhorn) RequestRemount(ctx context.Context, volume string, at time.Time) error {
	return l.status(ctx, "Volume", volume, map[string]any{"remountRequestedAt": at.UTC().Format(time.RFC3339)})
}

// markSettingsApplied leaves every setting applied, as longhorn-manager does.
func (l Longhorn) markSettingsApplied(ctx context.Context) error {
	var list longhorn.SettingList
	if err := l.client.List(ctx, &list, client.InNamespace(l.namespace)); err != nil {
		return fmt.Errorf("listing settings: %w", err)
	}
	for i := range list.Items {
		if err := l.status(ctx, "Setting", list.Items[i].Name, map[string]any{"applied": true}); err != nil {
			return err
		}
	}
	return nil
}

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/cluster/longhorn"
	"github.com/fairlead-io/fairlead/storage"
)

// Volumes gathers the volumes of the profile from both sides that can attach
// one: the storage system's own volumes, and Kubernetes' VolumeAttachments.
// Where they disagree, a volume is attached: that can only make a gate wait.
func (r *Reader) Volumes(ctx context.Context) ([]storage.Volume, error) {
	var list longhorn.VolumeList
	if err := r.objects.List(ctx, &list, client.InNamespace(r.profile.Namespace)); err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("listing volumes: %w", err)
	}
	attachments, err := r.attachments(ctx)
	if err != nil {
		return nil, err
	}
	volumes := make([]storage.Volume, 0, len(list.Items))
	for i := range list.Items {
		volume := volumeOf(&list.Items[i])
		if a, ok := attachments[volume.Name]; ok {
			volume.Attached, volume.Nodes = true, a.nodes
			delete(attachments, volume.Name)
		}
		volumes = append(volumes, volume)
	}
	// Attached by Kubernetes, unknown to the storage system: it may just not have been seen yet.
	for name, a := range attachments {
		volumes = append(volumes, storage.Volume{Name: name, Shared: a.shared, Attached: true, Engine: a.engine, Nodes: a.nodes})
	}
	storage.SortVolumes(volumes)
	return volumes, nil
}

func volumeOf(v *longhorn.Volume) storage.Volume {
	volume := storage.Volume{
		Name:     v.Name,
		Shared:   v.Spec.AccessMode == longhorn.AccessModeRWX && !v.Spec.Migratable,
		Attached: !surelyDetached(v),
		Engine:   v.Spec.Engine(),
	}
	if volume.Attached && v.Status.CurrentNodeID != "" {
		volume.Nodes = []string{v.Status.CurrentNodeID}
	}
	if status := v.Status.KubernetesStatus; status.LastPodRefAt == "" {
		for _, w := range status.WorkloadsStatus {
			volume.Workloads = append(volume.Workloads, status.Namespace+"/"+w.PodName)
		}
	}
	return volume
}

func surelyDetached(v *longhorn.Volume) bool {
	state := v.Status.State
	return v.Status.CurrentNodeID == "" && (state == "" || state == longhorn.StateCreating || state == longhorn.StateDetached)
}

type attachment struct {
	shared bool
	engine string
	nodes  []string
}

// attachments returns Kubernetes' attachments of the profile's driver by volume
// handle, those being deleted included: the mount may still be there.
func (r *Reader) attachments(ctx context.Context) (map[string]attachment, error) {
	var list storagev1.VolumeAttachmentList
	if err := r.objects.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing VolumeAttachments: %w", err)
	}
	var ours []storagev1.VolumeAttachment
	for _, va := range list.Items {
		if va.Spec.Attacher == r.profile.Driver && va.Spec.Source.PersistentVolumeName != nil {
			ours = append(ours, va)
		}
	}
	if len(ours) == 0 {
		return nil, nil
	}
	persistentVolumes, err := r.persistentVolumesByName(ctx)
	if err != nil {
		return nil, err
	}
	byHandle := map[string]attachment{}
	for _, va := range ours {
		name := *va.Spec.Source.PersistentVolumeName
		handle, shared, engine := name, true, longhorn.EngineV1 // a PV that is gone: take it for a shared one of its own name
		if pv, ok := persistentVolumes[name]; ok {
			handle, shared, engine = pv.handle, pv.shared, pv.engine
		}
		a := byHandle[handle]
		a.shared, a.engine = shared, engine
		if !slices.Contains(a.nodes, va.Spec.NodeName) {
			a.nodes = append(a.nodes, va.Spec.NodeName)
		}
		slices.Sort(a.nodes)
		byHandle[handle] = a
	}
	return byHandle, nil
}

type persistentVolume struct {
	handle, engine     string
	shared, migratable bool
}

// slimVolume is what a PersistentVolume of a CSI driver says of its volume.
func slimVolume(pv *corev1.PersistentVolume) persistentVolume {
	migratable := pv.Spec.CSI.VolumeAttributes[migratableAttribute] == "true"
	return persistentVolume{
		handle: pv.Spec.CSI.VolumeHandle, migratable: migratable,
		engine: cmp.Or(pv.Spec.CSI.VolumeAttributes[engineAttribute], longhorn.EngineV1),
		shared: slices.Contains(pv.Spec.AccessModes, corev1.ReadWriteMany) && !migratable,
	}
}

func (r *Reader) persistentVolumesByName(ctx context.Context) (map[string]persistentVolume, error) {
	var list corev1.PersistentVolumeList
	if err := r.provisioned.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing PersistentVolumes: %w", err)
	}
	byName := make(map[string]persistentVolume, len(list.Items))
	for i := range list.Items {
		pv := &list.Items[i]
		if pv.Spec.CSI == nil || pv.Spec.CSI.Driver != r.profile.Driver {
			continue
		}
		byName[pv.Name] = slimVolume(pv)
	}
	return byName, nil
}

// Longhorn's StorageClass parameters, kept in the PV's volumeAttributes.
const (
	migratableAttribute = "migratable"
	engineAttribute     = "dataEngine"
)

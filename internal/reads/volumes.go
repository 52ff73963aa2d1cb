package reads

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

// Volumes gathers volumes from Longhorn's volumes and tickets, and
// from Kubernetes' VolumeAttachments. A volume counts as attached if either side says so; at
// worst a gate then waits too long.
func (r *Reader) Volumes(ctx context.Context) ([]rwx.Volume, error) {
	var volumes []rwx.Volume
	// indexes of volumes by their name, and by the PersistentVolume that the storage system names.
	byName, byPV := map[string]int{}, map[string]int{}
	err := lists.ForEach(ctx, r.objects, &longhorn.VolumeList{}, func(v *longhorn.Volume) {
		byName[v.Name] = len(volumes)
		if pv := v.Status.KubernetesStatus.PVName; pv != "" {
			byPV[pv] = len(volumes)
		}
		volumes = append(volumes, volumeOf(v))
	}, client.InNamespace(r.names.Namespace))
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("listing volumes: %w", err)
	}
	attached, err := r.attachments(ctx)
	if err != nil {
		return nil, err
	}
	var names []string // of PersistentVolumes that the storage system does not name
	for name := range attached {
		if _, known := byPV[name]; !known {
			names = append(names, name)
		}
	}
	unnamed, err := r.persistentVolumes(ctx, names)
	if err != nil {
		return nil, err
	}
	byKubernetes := map[int]attachment{}
	for name, a := range attached {
		i, known := byPV[name]
		if !known {
			pv, exists := unnamed[name]
			if !exists { // a deleted PersistentVolume counts as shared, with a handle equal to its name
				pv = persistentVolume{handle: name, shared: true, engine: longhorn.EngineV1}
			}
			if i, known = byName[pv.handle]; !known {
				// Kubernetes has attached the volume, but the storage system's list, which may be stale, lacks it.
				i = len(volumes)
				byName[pv.handle] = i
				volumes = append(volumes, rwx.Volume{Name: pv.handle, Shared: pv.shared, Engine: pv.engine})
			}
		}
		byKubernetes[i] = byKubernetes[i].with(a.since, a.nodes...)
		if claim := unnamed[name].claim; claim != "" && len(volumes[i].Workloads) > 0 { // of another PersistentVolume than the named one
			volumes[i].OtherClaims = append(volumes[i].OtherClaims, claim)
		}
	}
	for i, a := range byKubernetes {
		slices.Sort(a.nodes)
		slices.Sort(volumes[i].OtherClaims)
		volumes[i].Attached, volumes[i].Since, volumes[i].Nodes = true, a.since, slices.Compact(a.nodes)
	}
	byItself := func(i int) bool { _, used := byKubernetes[i]; return volumes[i].Shared && !used }
	for i := range volumes {
		if byItself(i) { // else tickets would add nothing
			err = r.addTickets(ctx, volumes, byName, byItself)
			break
		}
	}
	rwx.SortVolumes(volumes)
	return volumes, err
}

func volumeOf(v *longhorn.Volume) rwx.Volume {
	volume := rwx.Volume{
		Name:     v.Name,
		Shared:   v.Spec.Shared(),
		Attached: !v.Detached(),
		Engine:   v.Spec.Engine(),
	}
	if volume.Attached && v.Status.CurrentNodeID != "" {
		volume.Nodes = []string{v.Status.CurrentNodeID}
	}
	if status := v.Status.KubernetesStatus; status.LastPodRefAt == "" {
		for _, w := range status.WorkloadsStatus {
			volume.Workloads = append(volume.Workloads, status.Namespace+"/"+w.PodName)
			if owner := ownerOf(status.Namespace, w); !slices.Contains(volume.Owners, owner) {
				volume.Owners = append(volume.Owners, owner)
			}
		}
	}
	return volume
}

var (
	// ofDeployment is the name that a Deployment gives its ReplicaSet: its own, and a hash in the alphabet of
	// k8s.io/apimachinery/pkg/util/rand.
	ofDeployment = regexp.MustCompile(`^(.+)-[bcdfghjklmnpqrstvwxz2456789]{5,10}$`)
	// Owner references are a user's to write, and owners become part of commands.
	kindOfOwner, nameOfOwner = regexp.MustCompile(`^[a-z]+$`), regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)
)

// ownerOf returns what a user stops to stop the pod: namespace/kind/name. A pod without an owner is its own. A ReplicaSet
// with a hash is assumed to be a Deployment's, which would scale the ReplicaSet up again.
func ownerOf(namespace string, w longhorn.WorkloadStatus) string {
	kind, name := strings.ToLower(w.WorkloadType), w.WorkloadName
	if !kindOfOwner.MatchString(kind) || !nameOfOwner.MatchString(name) {
		kind, name = "pod", w.PodName
	}
	if match := ofDeployment.FindStringSubmatch(name); kind == "replicaset" && match != nil {
		kind, name = "deployment", match[1]
	}
	return namespace + "/" + kind + "/" + name
}

// attachment has the nodes of VolumeAttachments, and when the oldest of them was created.
type attachment struct {
	nodes []string
	since time.Time
}

func (a attachment) with(since time.Time, nodes ...string) attachment {
	if a.nodes == nil || since.Before(a.since) {
		a.since = since
	}
	a.nodes = append(a.nodes, nodes...)
	return a
}

// attachments returns the driver's VolumeAttachments by PersistentVolume. A VolumeAttachment
// that is being deleted counts, since the mount may still exist.
func (r *Reader) attachments(ctx context.Context) (map[string]attachment, error) {
	attached := map[string]attachment{}
	err := lists.ForEach(ctx, r.objects, &storagev1.VolumeAttachmentList{}, func(va *storagev1.VolumeAttachment) {
		if pv := va.Spec.Source.PersistentVolumeName; va.Spec.Attacher == r.names.Driver && pv != nil {
			attached[*pv] = attached[*pv].with(va.CreationTimestamp.Time, va.Spec.NodeName)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listing VolumeAttachments: %w", err)
	}
	return attached, nil
}

// UserOf names what uses one volume now, or is about to; "" if nothing does.
func (r *Reader) UserOf(ctx context.Context, volume string) (string, error) {
	key := client.ObjectKey{Namespace: r.names.Namespace, Name: volume}
	var v longhorn.Volume
	if err := r.objects.Get(ctx, key, &v); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading volume %s: %w", volume, err)
	} else if err == nil && !v.Detached() {
		return "the volume is not detached", nil
	}
	var attachment longhorn.VolumeAttachment // of the volume's name
	if err := r.objects.Get(ctx, key, &attachment); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading the attachment of volume %s: %w", volume, err)
	}
	if tickets := slices.Sorted(maps.Keys(attachment.Spec.AttachmentTickets)); len(tickets) > 0 {
		return "attachment ticket " + tickets[0], nil
	}
	servers, err := r.ServersOf(ctx, volume)
	if err != nil || len(servers) == 0 {
		return "", err
	}
	return "server pod " + servers[0].Pod, nil
}

// addTickets marks shared volumes with a ticket as attached: the storage system's own gate for
// RWX settings counts tickets, not attachments.
// Source: longhorn-manager v1.7.2 and v1.12.0 datastore/longhorn.go, AreAllRWXVolumesDetached.
func (r *Reader) addTickets(ctx context.Context, volumes []rwx.Volume, byName map[string]int, byItself func(int) bool) error {
	return eachHere(ctx, r, &longhorn.VolumeAttachmentList{}, "attachments of the storage system", func(a *longhorn.VolumeAttachment) {
		i, known := byName[a.Spec.Volume]
		if !known || !byItself(i) || len(a.Spec.AttachmentTickets) == 0 {
			return
		}
		v, used := &volumes[i], false
		for _, ticket := range a.Spec.AttachmentTickets {
			if !v.Attached {
				v.Nodes = append(v.Nodes, ticket.NodeID)
			}
			purpose := ticket.Purpose()
			if used = used || purpose == ""; purpose != "" && !slices.Contains(v.Purposes, purpose) {
				v.Purposes = append(v.Purposes, purpose)
			}
		}
		if v.Attached = true; used {
			v.Purposes = nil
		}
		slices.Sort(v.Nodes)
		slices.Sort(v.Purposes)
	})
}

type persistentVolume struct {
	handle, engine     string
	claim              string // namespace/name
	shared, migratable bool
}

// slimVolume returns the fields in use of a CSI driver's PersistentVolume.
func slimVolume(pv *corev1.PersistentVolume) persistentVolume {
	migratable := pv.Spec.CSI.VolumeAttributes[longhorn.MigratableAttribute] == "true"
	claim := ""
	if ref := pv.Spec.ClaimRef; ref != nil {
		claim = ref.Namespace + "/" + ref.Name
	}
	return persistentVolume{
		handle: pv.Spec.CSI.VolumeHandle, migratable: migratable, claim: claim,
		engine: cmp.Or(pv.Spec.CSI.VolumeAttributes[longhorn.EngineAttribute], longhorn.EngineV1),
		shared: rwx.IsShared(pv.Spec.AccessModes) && !migratable,
	}
}

// oneByOne is the largest number of PersistentVolumes to read one by one. More are listed.
const oneByOne = 100

// persistentVolumes reads PersistentVolumes by name. The result lacks deleted ones and those of
// other drivers.
func (r *Reader) persistentVolumes(ctx context.Context, names []string) (map[string]persistentVolume, error) {
	found := make(map[string]persistentVolume, len(names))
	take := func(pv *corev1.PersistentVolume) {
		if pv.Spec.CSI != nil && pv.Spec.CSI.Driver == r.names.Driver {
			found[pv.Name] = slimVolume(pv)
		}
	}
	if len(names) <= oneByOne {
		for _, name := range names {
			pv, err := r.PersistentVolume(ctx, name)
			if err != nil {
				return nil, err
			}
			if pv != nil {
				take(pv)
			}
		}
		return found, nil
	}
	wanted := make(map[string]bool, len(names))
	for _, name := range names {
		wanted[name] = true
	}
	err := lists.ForEach(ctx, r.provisioned, &corev1.PersistentVolumeList{}, func(pv *corev1.PersistentVolume) {
		if wanted[pv.Name] {
			take(pv)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listing PersistentVolumes: %w", err)
	}
	return found, nil
}

package reads

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads/caches"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

func readerOver(t *testing.T, stored ...client.Object) *Reader {
	t.Helper()
	c := indexed(t, stored...).Build()
	return NewReader(objects.Longhorn, c, c)
}

func volume(name, mode, state, node string, changes ...func(*longhorn.Volume)) *longhorn.Volume {
	v := &longhorn.Volume{ObjectMeta: objects.Here(name), Spec: longhorn.VolumeSpec{AccessMode: mode}, Status: longhorn.VolumeStatus{State: state, CurrentNodeID: node}}
	return objects.With(v, changes...)
}

func attachedTo(pv, node string) *storagev1.VolumeAttachment {
	return objects.Attachment(pv, node, "driver.longhorn.io")
}

// ticketed is Longhorn's own attachment of a volume, with a ticket for each node.
func ticketed(volume string, nodes ...string) *longhorn.VolumeAttachment {
	a := &longhorn.VolumeAttachment{ObjectMeta: objects.Here(volume), Spec: longhorn.VolumeAttachmentSpec{Volume: volume, AttachmentTickets: map[string]longhorn.AttachmentTicket{}}}
	for _, node := range nodes {
		a.Spec.AttachmentTickets["csi-"+node] = longhorn.AttachmentTicket{NodeID: node}
	}
	return a
}

func persistentVolumeOf(name, handle string, mode corev1.PersistentVolumeAccessMode, attributes map[string]string) *corev1.PersistentVolume {
	return objects.Volume(name, "driver.longhorn.io", handle, "", func(pv *corev1.PersistentVolume) {
		pv.Spec.AccessModes, pv.Spec.CSI.VolumeAttributes = []corev1.PersistentVolumeAccessMode{mode}, attributes
		pv.Spec.ClaimRef, pv.Status.Phase = nil, ""
	})
}

func TestVolumesAreReadFromBothSides(t *testing.T) {
	sharedBy := func(nodes ...string) rwx.Volume {
		return rwx.Volume{Name: "v", Engine: "v1", Shared: true, Attached: nodes != nil, Nodes: nodes}
	}
	unshared := func(engine string, nodes ...string) rwx.Volume {
		return rwx.Volume{Name: "v", Engine: engine, Attached: nodes != nil, Nodes: nodes}
	}
	detached, pv := volume("v", "rwx", "detached", ""), persistentVolumeOf("v", "v", corev1.ReadWriteMany, nil)
	unknown, used := sharedBy(), sharedBy("node-1")
	unknown.Attached, used.Workloads, used.Owners = true, []string{"default/web-0"}, []string{"default/pod/web-0"}
	owned := sharedBy("node-1")
	owned.Workloads = []string{"default/web-0", "default/web-1", "default/api-5d9c7b8f64-x2x4v", "default/load-tx7vq", "default/evil-0"}
	owned.Owners = []string{"default/statefulset/web", "default/deployment/api", "default/replicaset/load", "default/pod/evil-0"}
	named := func(v *longhorn.Volume) { v.Status.KubernetesStatus.PVName = "static-pv" }
	migratable := func(v *longhorn.Volume) { v.Spec.Migratable = true }
	engines := func(engine, driver string) func(*longhorn.Volume) {
		return func(v *longhorn.Volume) { v.Spec.DataEngine, v.Spec.BackendStoreDriver = engine, driver }
	}
	usedBy := func(lastPodRefAt string) func(*longhorn.Volume) {
		return func(v *longhorn.Volume) {
			v.Status.KubernetesStatus = longhorn.KubernetesStatus{Namespace: "default", LastPodRefAt: lastPodRefAt, WorkloadsStatus: []longhorn.WorkloadStatus{{PodName: "web-0"}}}
		}
	}
	ofOwners := func(v *longhorn.Volume) {
		v.Status.KubernetesStatus = longhorn.KubernetesStatus{Namespace: "default", WorkloadsStatus: []longhorn.WorkloadStatus{
			{PodName: "web-0", WorkloadName: "web", WorkloadType: "StatefulSet"},
			{PodName: "web-1", WorkloadName: "web", WorkloadType: "StatefulSet"},
			{PodName: "api-5d9c7b8f64-x2x4v", WorkloadName: "api-5d9c7b8f64", WorkloadType: "ReplicaSet"},
			{PodName: "load-tx7vq", WorkloadName: "load", WorkloadType: "ReplicaSet"},
			{PodName: "evil-0", WorkloadName: "web;reboot", WorkloadType: "StatefulSet"},
		}}
	}
	for name, test := range map[string]struct {
		objects []client.Object
		want    rwx.Volume
	}{
		"detached":                         {[]client.Object{detached}, sharedBy()},
		"ticket":                           {[]client.Object{detached, ticketed("v", "node-2")}, sharedBy("node-2")},
		"ticket of another volume":         {[]client.Object{detached, ticketed("other", "node-2")}, sharedBy()},
		"no ticket left":                   {[]client.Object{detached, ticketed("v")}, sharedBy()},
		"attached by Longhorn alone":       {[]client.Object{volume("v", "rwx", "attached", "node-1")}, sharedBy("node-1")},
		"state detached, but on a node":    {[]client.Object{volume("v", "rwx", "detached", "node-1")}, sharedBy("node-1")},
		"detaching":                        {[]client.Object{volume("v", "rwx", "detaching", "node-1")}, sharedBy("node-1")},
		"unknown state counts as attached": {[]client.Object{volume("v", "rwx", "dancing", "")}, unknown},
		"attached by Kubernetes alone":     {[]client.Object{detached, pv, attachedTo("v", "node-3"), attachedTo("v", "node-2")}, sharedBy("node-2", "node-3")},
		"static PV is found by its handle": {[]client.Object{detached, persistentVolumeOf("static-pv", "v", corev1.ReadWriteMany, nil), attachedTo("static-pv", "node-2")}, sharedBy("node-2")},
		"PV that Longhorn names":           {[]client.Object{volume("v", "rwx", "detached", "", named), attachedTo("static-pv", "node-2")}, sharedBy("node-2")},
		"known to Kubernetes only":         {[]client.Object{pv, attachedTo("v", "node-2")}, sharedBy("node-2")},
		"attachment of a deleted PV":       {[]client.Object{attachedTo("v", "node-2")}, sharedBy("node-2")},
		"migratable (longhorn#11158)":      {[]client.Object{volume("v", "rwx", "attached", "node-1", migratable)}, unshared("v1", "node-1")},
		"migratable, Kubernetes only":      {[]client.Object{persistentVolumeOf("v", "v", corev1.ReadWriteMany, map[string]string{"migratable": "true"}), attachedTo("v", "node-2")}, unshared("v1", "node-2")},
		"RWO":                              {[]client.Object{volume("v", "rwo", "attached", "node-1")}, unshared("v1", "node-1")},
		"data engine":                      {[]client.Object{volume("v", "rwo", "detached", "", engines("v2", "v1"))}, unshared("v2")},
		"data engine before Longhorn 1.6":  {[]client.Object{volume("v", "rwo", "detached", "", engines("", "v2"))}, unshared("v2")},
		"data engine, Kubernetes only":     {[]client.Object{persistentVolumeOf("v", "v", corev1.ReadWriteOnce, map[string]string{"dataEngine": "v2"}), attachedTo("v", "node-2")}, unshared("v2", "node-2")},
		"workloads":                        {[]client.Object{volume("v", "rwx", "attached", "node-1", usedBy(""))}, used},
		"owners, with Deployments":         {[]client.Object{volume("v", "rwx", "attached", "node-1", ofOwners)}, owned},
		"past workloads are left out":      {[]client.Object{volume("v", "rwx", "attached", "node-1", usedBy("2026-01-01T00:00:00Z"))}, sharedBy("node-1")},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readerOver(t, test.objects...).Volumes(t.Context())
			must.True(t, err == nil && len(got) == 1 && reflect.DeepEqual(got[0], test.want), "got  %+v, %v\nwant %+v", got, err, test.want)
		})
	}
}

func TestVolumeIsAttachedSinceOldestAttachment(t *testing.T) {
	noon := metav1.NewTime(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	attached := func(node string, at metav1.Time) client.Object {
		return objects.With(attachedTo("v", node), objects.CreatedAt[*storagev1.VolumeAttachment](at))
	}
	later := metav1.NewTime(noon.Add(time.Minute))
	for name, all := range map[string][]client.Object{
		"oldest first": {attached("node-1", noon), attached("node-2", later)},
		"oldest last":  {attached("node-1", later), attached("node-2", noon)},
	} {
		got, err := readerOver(t, append(all, volume("v", "rwx", "attached", ""))...).Volumes(t.Context())
		must.True(t, err == nil && len(got) == 1 && got[0].Since.Equal(noon.Time), "%s: got %+v, %v", name, got, err)
	}
}

func TestAttachmentsOfOtherDriversAreIgnored(t *testing.T) {
	got, err := readerOver(t, objects.Attachment("v", "node-2", "ebs.csi.aws.com"), persistentVolumeOf("v", "v", corev1.ReadWriteMany, nil)).Volumes(t.Context())
	must.True(t, err == nil && len(got) == 0, "got %+v, %v", got, err)
}

func TestSlimCopiesKeepVolumes(t *testing.T) {
	pv := persistentVolumeOf("static-pv", "v", corev1.ReadWriteMany, map[string]string{"migratable": "true", "dataEngine": "v2", "other": "x"})
	slim, err := caches.SlimPersistentVolume(pv.DeepCopy())
	must.Do(t, err)
	va, err := caches.SlimVolumeAttachment(attachedTo("static-pv", "node-2"))
	must.Do(t, err)
	got, err := readerOver(t, slim.(client.Object), va.(client.Object)).Volumes(t.Context())
	want := []rwx.Volume{{Name: "v", Engine: "v2", Attached: true, Nodes: []string{"node-2"}}}
	must.True(t, err == nil && reflect.DeepEqual(got, want), "got  %+v, %v\nwant %+v", got, err, want)
	_, kept := slim.(*corev1.PersistentVolume).Spec.CSI.VolumeAttributes["other"]
	must.True(t, !kept, "an attribute without a reader is kept")
}

// Longhorn attaches volumes for its own purposes, too: no workload is to be stopped then.
func TestVolumesAttachedByLonghornItself(t *testing.T) {
	tickets := func(types ...string) *longhorn.VolumeAttachment {
		a := ticketed("v")
		for _, kind := range types {
			a.Spec.AttachmentTickets[kind] = longhorn.AttachmentTicket{Type: kind, NodeID: "node-1"}
		}
		return a
	}
	pv := persistentVolumeOf("v", "v", corev1.ReadWriteMany, nil)
	for name, c := range map[string]struct {
		objects []client.Object
		want    []string
	}{
		"for a backup":                   {[]client.Object{tickets("backup-controller")}, []string{"a backup"}},
		"for a backup, and by the UI":    {[]client.Object{tickets("backup-controller", "longhorn-api")}, []string{"Longhorn's UI or API", "a backup"}},
		"by an unknown part of Longhorn": {[]client.Object{tickets("new-controller")}, []string{"new-controller"}},
		"for a workload and a snapshot":  {[]client.Object{tickets("csi-attacher", "snapshot-controller")}, nil},
		"by a version without types":     {[]client.Object{ticketed("v", "node-1")}, nil},
		"by Kubernetes and for a backup": {[]client.Object{tickets("backup-controller"), pv, attachedTo("v", "node-1")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			volumes, err := readerOver(t, append(c.objects, volume("v", "rwx", "attached", "node-1"))...).Volumes(t.Context())
			must.True(t, err == nil && len(volumes) == 1 && volumes[0].Attached, "got %+v, %v", volumes, err)
			must.Equal(t, volumes[0].Purposes, c.want)
		})
	}
}

// The owner of a Released volume makes another PersistentVolume for it: Longhorn names one of them, and the pods of its claim.
func TestVolumeOfTwoPersistentVolumesNamesBothClaims(t *testing.T) {
	named := volume("v", "rwx", "attached", "node-1")
	named.Status.KubernetesStatus = longhorn.KubernetesStatus{PVName: "pv-1", Namespace: "team-a", WorkloadsStatus: []longhorn.WorkloadStatus{{PodName: "web-0"}}}
	again := objects.Volume("pv-2", "driver.longhorn.io", "v", "files", objects.Shared)
	volumes, err := readerOver(t, named, objects.Volume("pv-1", "driver.longhorn.io", "v", "data", objects.Shared), again, attachedTo("pv-1", "node-1"), attachedTo("pv-2", "node-2")).Volumes(t.Context())
	must.True(t, err == nil && len(volumes) == 1, "got %+v, %v", volumes, err)
	must.Equal(t, volumes[0].OtherClaims, []string{"default/files"})
	must.Equal(t, volumes[0].Nodes, []string{"node-1", "node-2"})
	must.Equal(t, catalog.SharedVolumeGate(volumes)[0].Message, "RWX volume is attached: stop the workloads that use it, so that it is detached; pods may use it by claim default/files, too")
}

package cluster

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/cluster/caches"
	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
	"github.com/fairlead-io/fairlead/internal/storage"
)

func readerOver(t *testing.T, objects ...client.Object) *Reader {
	t.Helper()
	c := indexed(t, objects...).Build()
	return NewReader(storage.Longhorn(), c, c)
}

func volume(name, mode, state, node string, change ...func(*longhorn.Volume)) *longhorn.Volume {
	v := &longhorn.Volume{
		ObjectMeta: metav1.ObjectMeta{Namespace: "longhorn-system", Name: name},
		Spec:       longhorn.VolumeSpec{AccessMode: mode},
		Status:     longhorn.VolumeStatus{State: state, CurrentNodeID: node},
	}
	for _, c := range change {
		c(v)
	}
	return v
}

func attachedTo(pv, node string, change ...func(*storagev1.VolumeAttachment)) *storagev1.VolumeAttachment {
	va := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "csi-" + pv + "-" + node},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "driver.longhorn.io", NodeName: node,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv},
		},
	}
	for _, c := range change {
		c(va)
	}
	return va
}

// ticketed is Longhorn's own attachment of a volume, with a ticket for each node.
func ticketed(volume string, nodes ...string) *longhorn.VolumeAttachment {
	a := &longhorn.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "longhorn-system", Name: volume},
		Spec:       longhorn.VolumeAttachmentSpec{Volume: volume, AttachmentTickets: map[string]longhorn.AttachmentTicket{}},
	}
	for _, node := range nodes {
		a.Spec.AttachmentTickets["csi-"+node] = longhorn.AttachmentTicket{NodeID: node}
	}
	return a
}

func persistentVolumeOf(name, handle string, mode corev1.PersistentVolumeAccessMode, attributes map[string]string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{mode},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: "driver.longhorn.io", VolumeHandle: handle, VolumeAttributes: attributes,
			}},
		},
	}
}

func TestVolumesAreSeenFromBothSides(t *testing.T) {
	for name, test := range map[string]struct {
		objects []client.Object
		want    storage.Volume
	}{
		"detached": {
			[]client.Object{volume("v", "rwx", "detached", "")},
			storage.Volume{Name: "v", Engine: "v1", Shared: true},
		},
		"a ticket to attach it": {
			[]client.Object{volume("v", "rwx", "detached", ""), ticketed("v", "node-2")},
			storage.Volume{Name: "v", Engine: "v1", Shared: true, Attached: true, Nodes: []string{"node-2"}},
		},
		"a ticket of another volume": {
			[]client.Object{volume("v", "rwx", "detached", ""), ticketed("other", "node-2")},
			storage.Volume{Name: "v", Engine: "v1", Shared: true},
		},
		"the last ticket is gone": {
			[]client.Object{volume("v", "rwx", "detached", ""), ticketed("v")},
			storage.Volume{Name: "v", Engine: "v1", Shared: true},
		},
		"attached, by the storage system alone": {
			[]client.Object{volume("v", "rwx", "attached", "node-1")},
			storage.Volume{Name: "v", Engine: "v1", Shared: true, Attached: true, Nodes: []string{"node-1"}},
		},
		"detached by its state, and still on a node": {
			[]client.Object{volume("v", "rwx", "detached", "node-1")},
			storage.Volume{Name: "v", Engine: "v1", Shared: true, Attached: true, Nodes: []string{"node-1"}},
		},
		"detaching is not yet detached": {
			[]client.Object{volume("v", "rwx", "detaching", "node-1")},
			storage.Volume{Name: "v", Engine: "v1", Shared: true, Attached: true, Nodes: []string{"node-1"}},
		},
		"a state that is not known may be attached": {
			[]client.Object{volume("v", "rwx", "dancing", "")},
			storage.Volume{Name: "v", Engine: "v1", Shared: true, Attached: true},
		},
		"attached, by Kubernetes alone, on the nodes where it is mounted": {
			[]client.Object{
				volume("v", "rwx", "detached", ""), persistentVolumeOf("v", "v", corev1.ReadWriteMany, nil),
				attachedTo("v", "node-3"), attachedTo("v", "node-2"),
			},
			storage.Volume{Name: "v", Engine: "v1", Shared: true, Attached: true, Nodes: []string{"node-2", "node-3"}},
		},
		"a static PV is found by its handle, not by its name": {
			[]client.Object{
				volume("v", "rwx", "detached", ""), persistentVolumeOf("static-pv", "v", corev1.ReadWriteMany, nil),
				attachedTo("static-pv", "node-2"),
			},
			storage.Volume{Name: "v", Engine: "v1", Shared: true, Attached: true, Nodes: []string{"node-2"}},
		},
		"the PV is known by the name that the storage system has for it, and is not read": {
			[]client.Object{
				volume("v", "rwx", "detached", "", func(v *longhorn.Volume) { v.Status.KubernetesStatus.PVName = "static-pv" }),
				attachedTo("static-pv", "node-2"),
			},
			storage.Volume{Name: "v", Engine: "v1", Shared: true, Attached: true, Nodes: []string{"node-2"}},
		},
		"known to Kubernetes only": {
			[]client.Object{persistentVolumeOf("v", "v", corev1.ReadWriteMany, nil), attachedTo("v", "node-2")},
			storage.Volume{Name: "v", Engine: "v1", Shared: true, Attached: true, Nodes: []string{"node-2"}},
		},
		"an attachment whose PV is gone counts": {
			[]client.Object{attachedTo("v", "node-2")},
			storage.Volume{Name: "v", Engine: "v1", Shared: true, Attached: true, Nodes: []string{"node-2"}},
		},
		"migratable is not shared (longhorn#11158)": {
			[]client.Object{volume("v", "rwx", "attached", "node-1", func(v *longhorn.Volume) { v.Spec.Migratable = true })},
			storage.Volume{Name: "v", Engine: "v1", Attached: true, Nodes: []string{"node-1"}},
		},
		"migratable, known to Kubernetes only": {
			[]client.Object{persistentVolumeOf("v", "v", corev1.ReadWriteMany, map[string]string{"migratable": "true"}), attachedTo("v", "node-2")},
			storage.Volume{Name: "v", Engine: "v1", Attached: true, Nodes: []string{"node-2"}},
		},
		"RWO is not shared": {
			[]client.Object{volume("v", "rwo", "attached", "node-1")},
			storage.Volume{Name: "v", Engine: "v1", Attached: true, Nodes: []string{"node-1"}},
		},
		"its data engine": {
			[]client.Object{volume("v", "rwo", "detached", "", func(v *longhorn.Volume) { v.Spec.DataEngine, v.Spec.BackendStoreDriver = "v2", "v1" })},
			storage.Volume{Name: "v", Engine: "v2"},
		},
		"its data engine, as it was called before": {
			[]client.Object{volume("v", "rwo", "detached", "", func(v *longhorn.Volume) { v.Spec.BackendStoreDriver = "v2" })},
			storage.Volume{Name: "v", Engine: "v2"},
		},
		"its data engine, known to Kubernetes only": {
			[]client.Object{persistentVolumeOf("v", "v", corev1.ReadWriteOnce, map[string]string{"dataEngine": "v2"}), attachedTo("v", "node-2")},
			storage.Volume{Name: "v", Engine: "v2", Attached: true, Nodes: []string{"node-2"}},
		},
		"workloads of now": {
			[]client.Object{volume("v", "rwx", "attached", "node-1", func(v *longhorn.Volume) {
				v.Status.KubernetesStatus = longhorn.KubernetesStatus{Namespace: "default", WorkloadsStatus: []longhorn.WorkloadStatus{{PodName: "web-0"}}}
			})},
			storage.Volume{Name: "v", Engine: "v1", Shared: true, Attached: true, Nodes: []string{"node-1"}, Workloads: []string{"default/web-0"}},
		},
		"workloads of the past are left out": {
			[]client.Object{volume("v", "rwx", "attached", "node-1", func(v *longhorn.Volume) {
				v.Status.KubernetesStatus = longhorn.KubernetesStatus{Namespace: "default", LastPodRefAt: "2026-01-01T00:00:00Z", WorkloadsStatus: []longhorn.WorkloadStatus{{PodName: "web-0"}}}
			})},
			storage.Volume{Name: "v", Engine: "v1", Shared: true, Attached: true, Nodes: []string{"node-1"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readerOver(t, test.objects...).Volumes(t.Context())
			if err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], test.want) {
				t.Fatalf("got  %+v, %v\nwant %+v", got, err, test.want)
			}
		})
	}
}

func TestAttachmentsOfOtherDriversAreNotOurs(t *testing.T) {
	other := attachedTo("v", "node-2", func(va *storagev1.VolumeAttachment) { va.Spec.Attacher = "ebs.csi.aws.com" })
	got, err := readerOver(t, other, persistentVolumeOf("v", "v", corev1.ReadWriteMany, nil)).Volumes(t.Context())
	if err != nil || len(got) != 0 {
		t.Fatalf("got %+v, %v", got, err)
	}
}

func TestSlimCopiesKeepWhatIsRead(t *testing.T) {
	pv := persistentVolumeOf("static-pv", "v", corev1.ReadWriteMany, map[string]string{"migratable": "true", "dataEngine": "v2", "other": "x"})
	slim, err := caches.SlimPersistentVolume(pv.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	va, err := caches.SlimVolumeAttachment(attachedTo("static-pv", "node-2"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := readerOver(t, slim.(client.Object), va.(client.Object)).Volumes(t.Context())
	want := []storage.Volume{{Name: "v", Engine: "v2", Attached: true, Nodes: []string{"node-2"}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %+v, %v\nwant %+v", got, err, want)
	}
	if _, kept := slim.(*corev1.PersistentVolume).Spec.CSI.VolumeAttributes["other"]; kept {
		t.Error("an attribute that nobody reads is kept")
	}
}

package lists

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestListedObjectsKeepTheFieldsThatAreRead(t *testing.T) {
	read := metav1.ObjectMeta{
		Namespace: "n", Name: "a", UID: "u", ResourceVersion: "7", CreationTimestamp: metav1.Unix(1, 0),
		Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "2"},
	}
	whole := *read.DeepCopy()
	whole.ManagedFields, whole.Finalizers = []metav1.ManagedFieldsEntry{{Manager: "m"}}, []string{"f"}
	for _, test := range []struct {
		list         client.ObjectList
		object, want unmarshaler
	}{
		{
			&corev1.ServiceList{},
			&corev1.Service{ObjectMeta: whole, Spec: corev1.ServiceSpec{
				ClusterIP: "10.0.0.1", ClusterIPs: []string{"10.0.0.1"}, Type: "NodePort", Selector: map[string]string{"s": "3"}, Ports: []corev1.ServicePort{{Port: 1}},
			}},
			&corev1.Service{ObjectMeta: read, Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1", Type: "NodePort", Selector: map[string]string{"s": "3"}}},
		},
		{
			&corev1.NodeList{},
			&corev1.Node{
				ObjectMeta: whole, Spec: corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{{Key: "t", Effect: "NoSchedule"}}, PodCIDR: "10.0.0.0/8"},
				Status: corev1.NodeStatus{
					Allocatable: corev1.ResourceList{"cpu": resource.MustParse("2")}, Capacity: corev1.ResourceList{"cpu": resource.MustParse("3")},
					Conditions: []corev1.NodeCondition{{Type: "Ready", Status: "True"}}, Images: []corev1.ContainerImage{{Names: []string{"i"}}},
				},
			},
			&corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", Labels: read.Labels},
				Spec:       corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{{Key: "t", Effect: "NoSchedule"}}},
				Status: corev1.NodeStatus{
					Allocatable: corev1.ResourceList{"cpu": resource.MustParse("2")}, Conditions: []corev1.NodeCondition{{Type: "Ready", Status: "True"}},
				},
			},
		},
		{
			&storagev1.VolumeAttachmentList{},
			&storagev1.VolumeAttachment{
				ObjectMeta: whole, Spec: storagev1.VolumeAttachmentSpec{Attacher: "d", NodeName: "node-1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("pv")}},
				Status: storagev1.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: map[string]string{"m": "4"}},
			},
			&storagev1.VolumeAttachment{
				ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a", UID: "u", CreationTimestamp: read.CreationTimestamp},
				Spec:       storagev1.VolumeAttachmentSpec{Attacher: "d", NodeName: "node-1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("pv")}},
			},
		},
		{ // the age decides which volume gets an address
			&corev1.PersistentVolumeList{},
			&corev1.PersistentVolume{ObjectMeta: whole, Spec: corev1.PersistentVolumeSpec{StorageClassName: "c", MountOptions: []string{"o"}}},
			&corev1.PersistentVolume{
				ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a", UID: "u", CreationTimestamp: read.CreationTimestamp},
				Spec:       corev1.PersistentVolumeSpec{StorageClassName: "c"},
			},
		},
		{ // the NFSService of an attached volume
			&storagev1.VolumeAttachmentList{},
			&storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{"fairlead.io/nfs-attached-service": "a/b", "other": "c"}}},
			&storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{"fairlead.io/nfs-attached-service": "a/b"}}},
		},
		{ // the NFSService of a volume
			&corev1.PersistentVolumeList{},
			&corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "h", VolumeAttributes: map[string]string{"service": "a/b", "share": "/c"}},
			}}},
			&corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "h", VolumeAttributes: map[string]string{"service": "a/b"}},
			}}},
		},
	} {
		kind, _ := protoKindOf(test.list)
		message, err := test.object.(interface{ Marshal() ([]byte, error) }).Marshal()
		must.Do(t, err)
		if message, err = kind.mask.appendKept(nil, message); err == nil {
			err = kind.object.Unmarshal(message)
		}
		if err != nil || !equality.Semantic.DeepEqual(kind.object, test.want) {
			t.Errorf("got  %+v, %v\nwant %+v", kind.object, err, test.want)
		}
	}
}

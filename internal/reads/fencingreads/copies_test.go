package fencingreads_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/caches"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// The controller compares the cache's copy of a Node with a live read before it records a loss.
func TestCopyOfANodeEqualsALiveRead(t *testing.T) {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: "uid-1", ResourceVersion: "7", Labels: map[string]string{"zone": "a"}, Annotations: map[string]string{fence.RecordedLossAnnotation: "x", "other": "y"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}}},
		Status: corev1.NodeStatus{
			NodeInfo:        corev1.NodeSystemInfo{BootID: "boot-1", SystemUUID: "machine-1", KubeletVersion: "v1.36.3"},
			Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}},
			Conditions:      []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(testkit.Noon), LastHeartbeatTime: metav1.NewTime(testkit.Noon.Add(time.Minute))}},
			VolumesInUse:    []corev1.UniqueVolumeName{"kubernetes.io/csi/ceph^a", "kubernetes.io/csi/ceph^b"},
			VolumesAttached: []corev1.AttachedVolume{{Name: "kubernetes.io/csi/ceph^a", DevicePath: "/dev/rbd0"}},
		},
	}
	object, err := caches.SlimNode(node.DeepCopy())
	must.Do(t, err)
	copied := object.(*corev1.Node)
	must.True(t, !fencingreads.FenceNodeChanged(copied, node), "got %+v, want %+v", fencingreads.FenceNode(copied), fencingreads.FenceNode(node))
	node.Status.VolumesInUse = node.Status.VolumesInUse[1:]
	must.True(t, fencingreads.FenceNodeChanged(copied, node), "a released volume is no change")
}

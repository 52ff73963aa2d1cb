package objects

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

// NetworkAttachmentDefinition is a network of Multus.
func NetworkAttachmentDefinition(namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("k8s.cni.cncf.io/v1")
	o.SetKind("NetworkAttachmentDefinition")
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// HealthyCluster is a cluster on a network: pvc-a is in use on node-1, pvc-b is idle.
func HealthyCluster(now time.Time) []client.Object {
	on := Network("storage-net", "lhnet1")
	record := Record(on)
	record.Status.Desired, record.Status.Phase, record.Status.Message = on.String(), "Applied", "clients and servers are on the network"
	server := ServerPod("pvc-a", ReadyPod)
	server.Spec.NodeName = "node-2"
	server.Annotations["k8s.v1.cni.cncf.io/networks"] = "kube-system/storage-net@lhnet1"
	server.Annotations["k8s.v1.cni.cncf.io/network-status"] = NetworkStatus(on, "10.1.0.7")
	plugin := Pod("longhorn-system", "longhorn-csi-plugin-1", "node-1")
	plugin.Labels = map[string]string{"app": "longhorn-csi-plugin", "controller-revision-hash": "1"}
	plugin.Annotations = map[string]string{"k8s.v1.cni.cncf.io/networks": "kube-system/storage-net@lhnet1", "k8s.v1.cni.cncf.io/network-status": NetworkStatus(on, "10.1.0.1")}
	OwnedBy[*corev1.Pod]("apps/v1", "DaemonSet", "longhorn-csi-plugin")(plugin)
	ReadyPod(plugin)
	share := &longhorn.ShareManager{ObjectMeta: Here("pvc-a"), Status: longhorn.ShareManagerStatus{State: "running", Endpoint: "nfs://pvc-a.longhorn-system.svc.cluster.local/pvc-a"}}
	daemonSet := &appsv1.DaemonSet{ObjectMeta: Here("longhorn-csi-plugin")}
	daemonSet.Spec.Template.Annotations = map[string]string{"k8s.v1.cni.cncf.io/networks": "kube-system/storage-net@lhnet1"}
	daemonSet.Status.DesiredNumberScheduled = 1
	used := LonghornVolume("pvc-a", "node-1", RWX)
	used.Status.KubernetesStatus.Namespace, used.Status.KubernetesStatus.WorkloadsStatus = "default", []longhorn.WorkloadStatus{{PodName: "web-0"}}
	return append(Installation(now),
		LonghornSetting("storage-network", "kube-system/storage-net"), LonghornSetting("storage-network-for-rwx-volume-enabled", "true"),
		settled(now, "storage-network", "kube-system/storage-net"), settled(now, "storage-network-for-rwx-volume-enabled", "true"),
		record, server, plugin, share, daemonSet, publishedSlice("10.1.0.7"), Headless("pvc-a", on),
		used, LonghornVolume("pvc-b", "", RWX), NetworkAttachmentDefinition("kube-system", "storage-net"),
	)
}

// settled is the report of the controller on a value of the storage system.
func settled(now time.Time, name, value string) *v1alpha1.Setting {
	s := &v1alpha1.Setting{ObjectMeta: Here(name)}
	s.Status = v1alpha1.SettingStatus{EffectiveValue: value, Source: "longhorn", Applied: true, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionApplied, Status: metav1.ConditionTrue, Message: "every component has the value", LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))}}}
	return s
}

func publishedSlice(address string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: Here("pvc-a-ipv4"), AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}}}}
	s.Labels = map[string]string{discoveryv1.LabelServiceName: "pvc-a", discoveryv1.LabelManagedBy: rwx.SliceManager}
	return s
}

// replaced replaces objects of the same kind and name, and adds the others.
func replaced(all []client.Object, changes ...client.Object) []client.Object {
	for _, c := range changes {
		found := false
		for i, o := range all {
			if o.GetName() == c.GetName() && o.GetNamespace() == c.GetNamespace() && typeOf(o) == typeOf(c) {
				all[i], found = c, true
			}
		}
		if !found {
			all = append(all, c)
		}
	}
	return all
}

// TroubledCluster has something to say in every part of the screen.
func TroubledCluster(now time.Time) []client.Object {
	waits := settled(now, "priority-class", "longhorn-critical")
	waits.Status.Applied = false
	waits.Status.Conditions[0].Status, waits.Status.Conditions[0].Message = metav1.ConditionFalse, "will be applied when these volumes are detached: pvc-a (node-1, pod default/web-0)"
	lost := &v1alpha1.NodeFence{ObjectMeta: metav1.ObjectMeta{Name: "node-3"}}
	since := metav1.NewTime(now.Add(-7 * time.Minute))
	lost.Spec = v1alpha1.NodeFenceSpec{NodeName: "node-3", LostSince: &since, Over: true}
	lost.Status = v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeReturned, Reason: fence.ReasonTainted}
	nfs := &v1alpha1.NFSService{ObjectMeta: metav1.ObjectMeta{Namespace: "archive", Name: "vault"}}
	nfs.Status.HealthyBackends, nfs.Status.Backends = 1, []v1alpha1.NFSBackendStatus{{Address: "10.2.0.1"}, {Address: "10.2.0.2"}}
	nfs.Status.Conditions = []metav1.Condition{{Type: v1alpha1.NFSReady, Status: metav1.ConditionTrue, Message: "1 of 2 backends is healthy", LastTransitionTime: since}}
	evicted := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0.1"}, InvolvedObject: corev1.ObjectReference{Kind: "StatefulSet", Namespace: "default", Name: "web"}}
	evicted.Type, evicted.Reason, evicted.Message = corev1.EventTypeWarning, "Remount", "pod web-0 is evicted, since its mount was dead"
	evicted.ReportingController, evicted.EventTime = "fairlead", metav1.NewMicroTime(now.Add(-3*time.Minute))
	return replaced(HealthyCluster(now), publishedSlice("10.1.0.9"), LonghornSetting("priority-class", "longhorn-critical"), waits, lost, nfs, evicted)
}

func typeOf(o client.Object) string { return fmt.Sprintf("%T", o) }

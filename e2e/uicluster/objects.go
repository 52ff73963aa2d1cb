package main

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

// hostile is a name that no view may take for markup.
const hostile = `pvc-"><script>document.title="owned"</script>`

// everything has something to see in every view.
func everything(now time.Time) []client.Object {
	all := objects.TroubledCluster(now)
	all = append(all, sharedVolume()...)
	for i := range 120 {
		all = append(all, objects.LonghornVolume(fmt.Sprintf("pvc-idle-%03d", i), "", objects.RWX))
	}
	all = append(all, objects.LonghornVolume(hostile, "", objects.RWX))
	for i := range 60 {
		record := &v1alpha1.NodeFence{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("worker-%02d", i)}}
		record.Spec.NodeName = record.Name
		record.Status = v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeHealthy, Reason: fence.ReasonReady}
		all = append(all, record)
	}
	all = append(all, nfsService(now)...)
	for _, o := range all {
		if s, ok := o.(*v1alpha1.Setting); ok && !s.Status.Applied { // half-way
			s.Status.Components = []v1alpha1.ComponentProgress{{Kind: "Deployment", Updated: 4, Total: 4}, {Kind: "InstanceManager", Updated: 3, Total: 12}}
			s.Status.Blockers = []v1alpha1.Blocker{{Kind: "Volume", Name: "pvc-a", Nodes: []string{"node-1"}, Workloads: []string{"default/web-0"}, Owners: []string{"default/statefulset/web"}, Message: "scale down the workloads that use the volume"}}
		}
		if r, ok := o.(*v1alpha1.NetworkRollout); ok {
			r.Status.Clients.Updated, r.Status.Clients.Total = 4, 4
		}
	}
	return all
}

// sharedVolume is in use on three nodes, and all is well with it.
func sharedVolume() []client.Object {
	const name, address = "pvc-5e0c7d1a-documents", "10.1.0.21"
	on := objects.Network("storage-net", "lhnet1")
	networked := func(pod *corev1.Pod, address string) {
		if pod.Annotations == nil {
			pod.Annotations = map[string]string{}
		}
		pod.Annotations["k8s.v1.cni.cncf.io/networks"] = "kube-system/storage-net@lhnet1"
		pod.Annotations["k8s.v1.cni.cncf.io/network-status"] = objects.NetworkStatus(on, address)
	}
	server := objects.ServerPod(name, objects.ReadyPod)
	server.Spec.NodeName = "node-2"
	server.UID = "uid-documents" // readings are cached by UID
	networked(server, address)
	used := objects.LonghornVolume(name, "node-4", objects.RWX)
	used.Status.KubernetesStatus.Namespace = "team-a"
	for i := range 3 {
		used.Status.KubernetesStatus.WorkloadsStatus = append(used.Status.KubernetesStatus.WorkloadsStatus, longhorn.WorkloadStatus{PodName: fmt.Sprintf("documents-7d9f%d", i)})
	}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: objects.Here(name + "-ipv4"), AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}}}}
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: name, discoveryv1.LabelManagedBy: rwx.SliceManager}
	share := &longhorn.ShareManager{ObjectMeta: objects.Here(name), Status: longhorn.ShareManagerStatus{State: "running", Endpoint: "nfs://" + name + ".longhorn-system.svc.cluster.local/" + name}}
	all := []client.Object{server, used, slice, share, objects.Headless(name, on)}
	for i := 4; i <= 6; i++ {
		node := fmt.Sprintf("node-%d", i)
		plugin := objects.Pod("longhorn-system", fmt.Sprintf("longhorn-csi-plugin-%d", i), node)
		plugin.Labels = map[string]string{"app": "longhorn-csi-plugin", "controller-revision-hash": "1"}
		networked(plugin, fmt.Sprintf("10.1.0.%d", i))
		objects.OwnedBy[*corev1.Pod]("apps/v1", "DaemonSet", "longhorn-csi-plugin")(plugin)
		objects.ReadyPod(plugin)
		all = append(all, plugin, objects.Attachment(name, node, "driver.longhorn.io"))
	}
	return append(all, objects.Volume(name, "driver.longhorn.io", name, "documents"))
}

// nfsService has three servers and 40 nodes, of which most use the first server.
func nfsService(now time.Time) []client.Object {
	s := &v1alpha1.NFSService{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "files"}}
	s.Spec.Exposure, s.Spec.Port = "PerNode", 2049
	since := metav1.NewTime(now.Add(-time.Hour))
	for i := range 3 {
		address := fmt.Sprintf("10.0.0.%d", i+1)
		s.Spec.Backends = append(s.Spec.Backends, v1alpha1.NFSBackend{Address: address})
		s.Status.Backends = append(s.Status.Backends, v1alpha1.NFSBackendStatus{Address: address + ":2049", Source: "static", Weight: 1, Zone: string(rune('a' + i)), Health: "Healthy", Since: &since})
	}
	down := &s.Status.Backends[2]
	down.Health, down.LastError = "Down", "dial tcp 10.0.0.3:2049: connect: connection refused"
	s.Status.HealthyBackends = 2
	s.Status.Conditions = []metav1.Condition{{Type: v1alpha1.NFSReady, Status: metav1.ConditionTrue, Reason: "Serving", Message: "2 of 3 backends are healthy"}}
	all := []client.Object{s, objects.Volume("pv-files", csi.DefaultDriver, "pv-files", "files", func(pv *corev1.PersistentVolume) {
		pv.Spec.CSI.VolumeAttributes = map[string]string{"share": "/exports", "service": "storage/files"}
	})}
	for i := range 40 {
		server := strings.TrimSuffix(s.Status.Backends[min(i/24, 1)].Address, ":2049")
		all = append(all, objects.Attachment("pv-files", fmt.Sprintf("worker-%02d", i), csi.DefaultDriver, func(a *storagev1.VolumeAttachment) {
			a.Status.AttachmentMetadata = map[string]string{csi.AddressKey(csi.DefaultDriver): server}
		}))
	}
	return all
}

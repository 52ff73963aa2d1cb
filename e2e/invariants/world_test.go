//lint:file-ignore SA1019 the readers of the deprecated API are served too

package invariants

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
)

const (
	fairlead = "system:serviceaccount:fairlead-system:fairlead-controller"
	lhuser   = "system:serviceaccount:longhorn-system:longhorn-service-account"
	netA     = "kube-system/a"
	onA      = netA + "@lhnet1"
	onB      = "kube-system/b@lhnet1"
	address  = "192.168.50.9"
)

// world is a record of writes, a second apart.
type world struct {
	*testing.T
	writes []sandbox.Write
	at     time.Time
	uids   int
}

// newWorld has Fairlead, Longhorn on a network ("" for the cluster network), a client on each of two nodes, and volume v
// with a Service.
func newWorld(t *testing.T, network string) *world {
	w := &world{T: t, at: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}
	w.setting(lhuser, storageNetwork, netA, true)
	w.setting(lhuser, storageNetworkForRWX, fmt.Sprint(network != ""), true)
	w.write(lhuser, "create", plugin(network))
	for _, node := range []string{"node-1", "node-2"} {
		w.client("csi-"+node, node, network)
	}
	w.write(lhuser, "create", &longhorn.Volume{ObjectMeta: at("v"), Spec: longhorn.VolumeSpec{AccessMode: "rwx"}})
	w.write(lhuser, "create", service(network))
	w.rollout(network, network, "Applied")
	return w
}

func at(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: names.Namespace, Name: name, UID: types.UID(name)}
}

var resources = map[string][2]string{
	"*v1.Pod": {"", "pods"}, "*v1.Service": {"", "services"}, "*v1.Endpoints": {"", "endpoints"}, "*v1.EndpointSlice": {"discovery.k8s.io", "endpointslices"}, "*v1.DaemonSet": {"apps", "daemonsets"},
	"*v1.VolumeAttachment": {"storage.k8s.io", "volumeattachments"}, "*longhorn.Setting": {"longhorn.io", "settings"}, "*longhorn.Volume": {"longhorn.io", "volumes"},
	"*longhorn.Engine": {"longhorn.io", "engines"}, "*longhorn.ShareManager": {"longhorn.io", "sharemanagers"},
	"*v1alpha1.NetworkRollout": {"fairlead.io", "networkrollouts"}, "*v1alpha1.Setting": {"fairlead.io", "settings"},
}

// write records the object after a write.
func (w *world) write(user, verb string, o client.Object) *sandbox.Write {
	w.Helper()
	w.at = w.at.Add(time.Second)
	o.SetResourceVersion(fmt.Sprint(100 + len(w.writes)))
	data, err := json.Marshal(o)
	if err != nil {
		w.Fatal(err)
	}
	r := resources[fmt.Sprintf("%T", o)]
	w.writes = append(w.writes, sandbox.Write{
		At: w.at, User: user, Verb: verb, Group: r[0], Resource: r[1], Namespace: o.GetNamespace(), Name: o.GetName(), Code: 200, Response: data, Changed: true,
	})
	return &w.writes[len(w.writes)-1]
}

// remove records an immediate deletion.
func (w *world) remove(user string, o client.Object) { w.write(user, "delete", o) }

func (w *world) pass(d time.Duration) { w.at = w.at.Add(d) }

func (w *world) setting(user, name, value string, applied bool) {
	w.write(user, "update", &longhorn.Setting{ObjectMeta: at(name), Value: value, Status: longhorn.SettingStatus{Applied: applied}})
}

func (w *world) ownSetting(name, value string, applied bool) {
	w.write(fairlead, "update", &v1alpha1.Setting{ObjectMeta: at(name), Status: v1alpha1.SettingStatus{Applied: applied, AppliedValue: ptr.To(value), EffectiveValue: value}})
}

func (w *world) rollout(clients, servers, phase string) {
	r := &v1alpha1.NetworkRollout{ObjectMeta: at(longhorn.Name)}
	r.Status = v1alpha1.NetworkRolloutStatus{Recorded: true, Phase: phase, Desired: clients}
	r.Status.Clients.Network, r.Status.Servers.Network = clients, servers
	w.write(fairlead, "update", r)
}

func (w *world) pod(name, node string, labels map[string]string, owner, network, ip string) *corev1.Pod {
	w.uids++
	pod := &corev1.Pod{ObjectMeta: at(name)}
	pod.UID, pod.Labels, pod.CreationTimestamp = types.UID(fmt.Sprint(w.uids)), labels, metav1.NewTime(w.at)
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: owner, Name: names.ClientDaemonSet, Controller: ptr.To(true)}}
	pod.Spec.NodeName = node
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if network != "" {
		pod.Annotations = map[string]string{multus.NetworksAnnotation: network}
	}
	if ip != "" {
		name, iface := network[:len(netA)], network[len(netA)+1:]
		pod.Annotations[multus.NetworkStatusAnnotation] = fmt.Sprintf(`[{"name":%q,"interface":%q,"ips":[%q]}]`, name, iface, ip)
	}
	return pod
}

// client starts a Ready client with its address.
func (w *world) client(name, node, network string) *corev1.Pod {
	ip := ""
	if network != "" {
		ip = "192.168.50.1"
	}
	pod := w.pod(name, node, names.ClientLabels, "DaemonSet", network, ip)
	w.write("daemon-set-controller", "create", pod)
	return pod
}

// server starts the Ready server of v.
func (w *world) server(network string) *corev1.Pod {
	ip := ""
	if network != "" {
		ip = address
	}
	labels := map[string]string{names.VolumeLabel: "v"}
	for key, value := range names.ServerLabels {
		labels[key] = value
	}
	pod := w.pod("share-manager-v", "node-1", labels, "ShareManager", network, ip)
	w.write(lhuser, "create", pod)
	return pod
}

// attach has v attached to node-1, served and run for a while.
func (w *world) attach() {
	w.write("attachdetach-controller", "create", attachment())
	w.write(lhuser, "update", &longhorn.Volume{ObjectMeta: at("v"), Spec: longhorn.VolumeSpec{AccessMode: "rwx"}, Status: longhorn.VolumeStatus{State: "attached"}})
	w.write(lhuser, "update", &longhorn.ShareManager{ObjectMeta: at("v"), Status: longhorn.ShareManagerStatus{State: "running"}})
	engine := &longhorn.Engine{ObjectMeta: at("v-e-0"), Spec: longhorn.InstanceSpec{VolumeName: "v", DesireState: longhorn.InstanceRunning}}
	engine.Status = longhorn.InstanceStatus{CurrentState: longhorn.InstanceRunning, InstanceManagerName: "instance-manager-1"}
	w.write(lhuser, "update", engine)
	w.pass(time.Minute)
}

func attachment() *storagev1.VolumeAttachment {
	a := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "csi-v", UID: "csi-v"}}
	a.Spec = storagev1.VolumeAttachmentSpec{Attacher: names.Driver, NodeName: "node-1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("v")}}
	return a
}

func plugin(network string) *appsv1.DaemonSet {
	ds := &appsv1.DaemonSet{ObjectMeta: at(names.ClientDaemonSet)}
	if network != "" {
		ds.Spec.Template.Annotations = map[string]string{multus.NetworksAnnotation: network}
	}
	return ds
}

func service(network string) *corev1.Service {
	s := &corev1.Service{ObjectMeta: at("v"), Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.9"}}
	s.Labels = map[string]string{names.VolumeLabel: "v"}
	if network != "" {
		s.Spec.ClusterIP = corev1.ClusterIPNone
	}
	return s
}

func slice(ip string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: at("v-1"), Endpoints: []discoveryv1.Endpoint{{Addresses: []string{ip}}}}
	s.Labels = map[string]string{discoveryv1.LabelServiceName: "v"}
	return s
}

func classic(ip string) *corev1.Endpoints {
	return &corev1.Endpoints{ObjectMeta: at("v"), Subsets: []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: ip}}}}}
}

func terminating(pod *corev1.Pod) *corev1.Pod {
	gone := pod.DeepCopy()
	gone.DeletionTimestamp, gone.DeletionGracePeriodSeconds = ptr.To(metav1.NewTime(time.Now())), ptr.To[int64](30)
	return gone
}

package objects

import (
	"fmt"
	"maps"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

// Longhorn has the names of the objects below.
var Longhorn = permitting(longhorn.DefaultNames(), "team-x/nfs", "team-y/nfs", "kube-system/backup-net")

func permitting(p longhorn.Names, networks ...string) longhorn.Names {
	for _, text := range networks {
		n, _ := multus.ParseNetwork(text)
		p.VolumeNetworks.Networks = append(p.VolumeNetworks.Networks, n)
	}
	for _, n := range append([]multus.Network{{}}, p.VolumeNetworks.Networks...) {
		p.VolumeNetworks.Addresses = append(p.VolumeNetworks.Addresses, rwx.AddressGrant{
			Network: n, Ranges: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}, MACPrefixes: []string{"02"},
		})
	}
	return p
}

// Here names an object in Longhorn's namespace.
func Here(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: Longhorn.Namespace, Name: name}
}

// Network is an attachment to a network of namespace kube-system.
func Network(name, interfaceName string) multus.Attachment {
	return multus.Attachment{Network: multus.Network{Namespace: "kube-system", Name: name}, Interface: interfaceName}
}

// NetworkStatus is the annotation in which Multus reports the addresses on a network.
func NetworkStatus(on multus.Attachment, addresses ...string) string {
	return fmt.Sprintf(`[{"name": %q, "interface": %q, "ips": %s}]`, on.Network, on.Interface, quoted(addresses))
}

func quoted(list []string) string {
	text := "["
	for i, s := range list {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%q", s)
	}
	return text + "]"
}

// Record of a roll-out with clients and servers on a network.
func Record(on multus.Attachment) *v1alpha1.NetworkRollout {
	r := &v1alpha1.NetworkRollout{ObjectMeta: Here(longhorn.Name)}
	r.Status.Recorded, r.Status.Clients.Network, r.Status.Servers.Network = true, on.String(), on.String()
	return r
}

// Setting of Fairlead's.
func Setting[N ~string](name N, value string) *v1alpha1.Setting {
	return &v1alpha1.Setting{ObjectMeta: Here(string(name)), Value: &value}
}

// LonghornSetting that is applied.
func LonghornSetting[N ~string](name N, value string) *longhorn.Setting {
	return &longhorn.Setting{ObjectMeta: Here(string(name)), Value: value, Status: longhorn.SettingStatus{Applied: true}}
}

// LonghornVolume that is attached to a node; an empty node means no node.
func LonghornVolume(name, node string, changes ...func(*longhorn.Volume)) *longhorn.Volume {
	v := &longhorn.Volume{ObjectMeta: Here(name)}
	if v.Status.State, v.Status.CurrentNodeID = "detached", node; node != "" {
		v.Status.State = "attached"
	}
	return With(v, changes...)
}

// RWX makes a Longhorn volume shared.
func RWX(v *longhorn.Volume) { v.Spec.AccessMode = longhorn.AccessModeRWX }

// ServerPod is the share manager's pod of a volume.
func ServerPod(volume string, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := Pod(Longhorn.Namespace, "share-manager-"+volume, "")
	pod.UID, pod.Labels, pod.Annotations = "uid-1", maps.Clone(Longhorn.ServerLabels), map[string]string{}
	pod.Labels[Longhorn.VolumeLabel] = volume
	OwnedBy[*corev1.Pod](longhorn.GroupVersion.String(), longhorn.ShareManagerKind, volume)(pod)
	return With(pod, changes...)
}

// Headless is the Service of a volume on a network, as Fairlead shapes it.
func Headless(volume string, on multus.Attachment, changes ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{ObjectMeta: Here(volume), Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}}
	s.Labels = map[string]string{Longhorn.VolumeLabel: volume}
	s.Annotations = map[string]string{rwx.NetworkAnnotation: on.String()}
	return With(s, changes...)
}

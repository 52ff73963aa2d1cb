package publish

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// portMapper is the port of rpcbind (RFC 1833).
const portMapper = 111

// version3Ports are the ports that clients of NFSv3 ask before they mount: mount.nfs asks the port mapper for the MOUNT
// protocol, over TCP or UDP, then MOUNT. They lead to the same server as NFS. mountPort 0: none.
func version3Ports(mountPort uint16) []corev1.ServicePort {
	if mountPort == 0 {
		return nil
	}
	var ports []corev1.ServicePort
	for _, p := range []corev1.ServicePort{
		{Name: "rpcbind", Protocol: corev1.ProtocolTCP, Port: portMapper}, {Name: "rpcbind-udp", Protocol: corev1.ProtocolUDP, Port: portMapper},
		{Name: "mountd", Protocol: corev1.ProtocolTCP, Port: int32(mountPort)}, {Name: "mountd-udp", Protocol: corev1.ProtocolUDP, Port: int32(mountPort)},
	} {
		p.TargetPort = intstr.FromInt32(p.Port)
		ports = append(ports, p)
	}
	return withoutTwins(ports)
}

// withoutTwins leaves out ports that an earlier one is already, as on servers with all protocols on one port.
func withoutTwins(ports []corev1.ServicePort) []corev1.ServicePort {
	var list []corev1.ServicePort
	for _, p := range ports {
		if !slices.ContainsFunc(list, func(q corev1.ServicePort) bool { return p.Port == q.Port && p.Protocol == q.Protocol }) {
			list = append(list, p)
		}
	}
	return list
}

// IsVersion3 reports whether a port of a slice is one of NFSv3's, and not NFS itself.
func IsVersion3(name *string) bool {
	return slices.ContainsFunc(version3Ports(1), func(p corev1.ServicePort) bool { return p.Name == ptr.Deref(name, "") })
}

// endpointPorts are ports as slices have them. A port that the Service leaves out as a twin leads nowhere.
func endpointPorts(ports []corev1.ServicePort) []discoveryv1.EndpointPort {
	var list []discoveryv1.EndpointPort
	for _, p := range ports {
		list = append(list, discoveryv1.EndpointPort{Name: ptr.To(p.Name), Protocol: ptr.To(p.Protocol), Port: ptr.To(p.Port)})
	}
	return list
}

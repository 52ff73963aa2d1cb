package publish

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// mount.nfs asks port 111 and mountd of the ClusterIP before it mounts NFSv3.
func TestServicesPublishThePortsOfVersion3(t *testing.T) {
	for mountPort, want := range map[uint16]string{
		0:     "nfs 2049/TCP",
		20048: "nfs 2049/TCP, rpcbind 111/TCP, rpcbind-udp 111/UDP, mountd 20048/TCP, mountd-udp 20048/UDP",
		2049:  "nfs 2049/TCP, rpcbind 111/TCP, rpcbind-udp 111/UDP, mountd-udp 2049/UDP", // go-nfs and others: all on one port
		111:   "nfs 2049/TCP, rpcbind 111/TCP, rpcbind-udp 111/UDP",
	} {
		f := Frontend{Namespace: "storage", Name: "pool", Service: "pool", Owner: metav1.OwnerReference{UID: "u"}, Port: 2049, Slot: -1, Backend: at(0), MountPort: mountPort}
		service := f.Object()
		var ports []string
		led := map[string]bool{} // names of ports that lead to the server
		for _, slice := range f.Slices() {
			for _, p := range slice.Ports() {
				led[fmt.Sprintf("%s %d/%s", *p.Name, *p.Port, *p.Protocol)] = true
				must.Equal(t, IsVersion3(p.Name), *p.Name != PortName, "%s", *p.Name)
			}
		}
		for _, p := range service.Spec.Ports {
			text := fmt.Sprintf("%s %d/%s", p.Name, p.Port, p.Protocol)
			ports = append(ports, text)
			must.True(t, led[text], "mount port %d: %s leads nowhere", mountPort, text)
		}
		must.Equal(t, strings.Join(ports, ", "), want, "mount port %d", mountPort)
		must.Equal(t, Check(service, service).Action, Keep, "mount port %d", mountPort)
	}
}

func TestProtocolOfOthersStaysWithItsPort(t *testing.T) {
	f := Frontend{Namespace: "storage", Name: "pool", Service: "pool", Owner: metav1.OwnerReference{UID: "u"}, Port: 2049, Slot: -1, Backend: at(0)}
	have := f.Object()
	have.Spec.Ports[0].AppProtocol = ptr.To("kubernetes.io/nfs")
	f.MountPort = 20048
	verdict := Check(have, f.Object())
	must.Equal(t, verdict.Action, Update)
	var named []corev1.ServicePort
	for _, p := range verdict.Service.Spec.Ports {
		if p.AppProtocol != nil {
			named = append(named, p)
		}
	}
	must.True(t, len(named) == 1 && named[0].Name == PortName && len(verdict.Service.Spec.Ports) == 5, "got %+v", verdict.Service.Spec.Ports)
}

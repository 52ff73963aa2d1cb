package nfs

import (
	"net"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// The ground that the other tests stand on: the real kube-proxy sends a ClusterIP to
// what a slice names.
func TestProxySendsClusterIPToSlice(t *testing.T) {
	c, ctx := shared(t), t.Context()
	if _, err := c.servers(ctx, 1); err != nil {
		t.Fatal(err)
	}
	must.Do(t, c.startProxyOnce(ctx, c.State.Nodes[0]))
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "by-hand"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "nfs", Port: nfsPort}}}}
	must.Do(t, c.Client.Create(ctx, service))
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: "by-hand", Labels: map[string]string{discoveryv1.LabelServiceName: "by-hand"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{ServerAddress(1).String()}}},
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("nfs"), Port: ptr.To(int32(nfsPort))}},
	}
	must.Do(t, c.Client.Create(ctx, slice))
	must.Do(t, reached(service.Spec.ClusterIP))
}

// reached waits until an address takes connections.
func reached(address string) error {
	var err error
	for range 100 {
		var connection net.Conn
		if connection, err = net.DialTimeout("tcp", net.JoinHostPort(address, "2049"), time.Second); err == nil {
			return connection.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	return err
}

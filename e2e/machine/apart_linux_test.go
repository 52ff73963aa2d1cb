package machine

import (
	"net"
	"net/netip"
	"testing"
)

func TestNetworkApartHasItsOwnPorts(t *testing.T) {
	apart, err := NewApart(Spec{Addresses: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}})
	if err != nil {
		t.Fatal(err)
	}
	here, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	_, port, err := net.SplitHostPort(here.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort("10.96.1.2", port)
	if connection, err := apart.Dial(address); err == nil {
		connection.Close()
		t.Error("a listener of the machine was reached from apart")
	}
	there, err := apart.Listen(":" + port)
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	connection, err := apart.Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	accepted, err := there.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if got := accepted.LocalAddr().String(); got != address {
		t.Errorf("the connection came to %s, want %s", got, address)
	}
	accepted.Close()
}

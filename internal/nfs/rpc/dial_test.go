package rpc

import (
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestSharesAreLookedUpFromReservedPorts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:665")
	permitted := !errors.Is(err, syscall.EACCES) // else any port is used
	if err == nil {
		l.Close()
	}
	ports := make(chan uint16, 4)
	script := answers(nil, func(request) ([]byte, bool) { return success(0, 0, 2, 24, 0, 15, 0), true })
	address := startScript(t, func(c net.Conn) { ports <- c.RemoteAddr().(*net.TCPAddr).AddrPort().Port(); script(c) })
	for shares, want := range map[string]bool{"": false, "/data": true} {
		target := Target{Address: address, Versions: []int32{V4}}
		if shares != "" {
			target.Shares = []string{shares}
		}
		expect(t, ask(t, target), fine)
		port := <-ports
		must.True(t, (port < 1024) == (want && permitted), "share %q was looked up from port %d", shares, port)
	}
}

func TestTakenReservedPortsAreTriedAgain(t *testing.T) {
	address := startScript(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) })
	for range 2 * (highestReserved - lowestReserved) { // more than there are
		c, err := DialReserved(t.Context(), address)
		must.Do(t, err)
		t.Cleanup(func() { c.Close() })
	}
}

func TestReservedPortsOfBothFamilies(t *testing.T) {
	for _, network := range []string{"127.0.0.1:0", "[::1]:0"} {
		listener, err := net.Listen("tcp", network)
		if errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT) {
			t.Log("the machine has no IPv6: ", err)
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		address := addressOf(listener)
		for _, a := range []netip.AddrPort{address, netip.AddrPortFrom(netip.AddrFrom16(address.Addr().As16()), address.Port())} {
			c, err := DialReserved(t.Context(), a)
			if err != nil {
				t.Errorf("%s: %v", a, err)
				continue
			}
			c.Close()
		}
	}
}

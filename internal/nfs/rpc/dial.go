package rpc

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"syscall"
)

// DialTCP connects from any port. Connections end in the ordinary way: NFS-Ganesha logs each one that is reset.
func DialTCP(ctx context.Context, address netip.AddrPort) (net.Conn, error) {
	dialer := net.Dialer{KeepAlive: -1} // a probe is shorter than the first keep-alive
	return dialer.DialContext(ctx, "tcp", address.String())
}

// Ports below 1024 that the kernel's NFS client uses by default (sunrpc.min_resvport and max_resvport).
const (
	lowestReserved  = 665
	highestReserved = 1023
)

// DialReserved connects from a port below 1024, as mounting kernels do, since servers may refuse shares to other
// ports, or hide them (Linux: secure; NFS-Ganesha: PrivilegedPort). If the process may not, it uses any port.
func DialReserved(ctx context.Context, address netip.AddrPort) (net.Conn, error) {
	const attempts = 8
	for range attempts {
		port := lowestReserved + rand.N(highestReserved-lowestReserved+1)
		dialer := net.Dialer{KeepAlive: -1, Control: shareLocalPort, LocalAddr: &net.TCPAddr{Port: port}}
		conn, err := dialer.DialContext(ctx, "tcp", address.String())
		taken := errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EADDRNOTAVAIL)
		if errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM) {
			break
		}
		if !taken {
			return conn, err
		}
	}
	return DialTCP(ctx, address)
}

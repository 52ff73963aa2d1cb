package beside

import (
	"context"
	"fmt"
	"io"
	"net"
)

// backend is Service longhorn-backend: Longhorn's REST API listens at the address of its
// pod only, so what calls the Service's address is led there.
type backend struct {
	listener net.Listener
	to       string
}

func startBackend(podIP string) (*backend, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(serviceAddresses["longhorn-backend"], restPort))
	if err != nil {
		return nil, fmt.Errorf("listening for Service longhorn-backend: %w", err)
	}
	b := &backend{listener: listener, to: net.JoinHostPort(podIP, restPort)}
	go b.accept()
	return b, nil
}

func (b *backend) accept() {
	for {
		in, err := b.listener.Accept()
		if err != nil {
			return
		}
		go b.pass(in)
	}
}

// pass ends both connections when one side ends: HTTP asks for no half of one.
func (b *backend) pass(in net.Conn) {
	defer in.Close()
	out, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", b.to)
	if err != nil {
		return
	}
	defer out.Close()
	one := make(chan struct{}, 2)
	go func() { _, _ = io.Copy(out, in); one <- struct{}{} }()
	go func() { _, _ = io.Copy(in, out); one <- struct{}{} }()
	<-one
}

func (b *backend) stop() { _ = b.listener.Close() }

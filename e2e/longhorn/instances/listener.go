package main

import (
	"context"
	"net"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// podListener takes connections to addresses of running pods only.
type podListener struct {
	net.Listener
	pods *pods
}

// Accept closes the connections that no pod would have taken.
func (l podListener) Accept() (net.Conn, error) {
	for {
		connection, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.pods.take(connection) {
			return &podConnection{Conn: connection, pods: l.pods}, nil
		}
		_ = connection.Close()
	}
}

func (p *pods) take(connection net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	called := p.byAddress[host(connection.LocalAddr())]
	if called == nil {
		return false
	}
	called.connections[connection] = true
	return true
}

// podConnection is forgotten when it is closed.
type podConnection struct {
	net.Conn
	pods *pods
}

// Close ends the connection.
func (c *podConnection) Close() error {
	c.pods.mu.Lock()
	if called := c.pods.byAddress[host(c.LocalAddr())]; called != nil {
		delete(called.connections, c.Conn)
	}
	c.pods.mu.Unlock()
	return c.Conn.Close()
}

func host(address net.Addr) string {
	if tcp, ok := address.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().String()
	}
	return address.String()
}

// calledAddress is the address that a call came to.
func calledAddress(ctx context.Context) string {
	if from, ok := peer.FromContext(ctx); ok && from.LocalAddr != nil {
		return host(from.LocalAddr)
	}
	return ""
}

// called returns the pod that a call came to. The caller holds the lock.
func (p *pods) called(ctx context.Context) (*pod, error) {
	if found := p.byAddress[calledAddress(ctx)]; found != nil {
		return found, nil
	}
	return nil, status.Errorf(codes.Unavailable, "no running pod has address %s", calledAddress(ctx))
}

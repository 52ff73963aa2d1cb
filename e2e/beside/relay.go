package beside

import (
	"context"
	"io"
	"net"
)

// Relay passes connections on to another address.
type Relay struct {
	listener net.Listener
	dial     func(called string) (net.Conn, error)
}

// StartRelay passes on what the listener accepts.
func StartRelay(listener net.Listener, to string) *Relay {
	return startRelay(listener, func(string) (net.Conn, error) { return dial(to) })
}

// startRelay has dial make the other connection, by the address that was called.
func startRelay(listener net.Listener, dial func(called string) (net.Conn, error)) *Relay {
	r := &Relay{listener: listener, dial: dial}
	go r.accept()
	return r
}

func dial(address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(context.Background(), "tcp", address)
}

func (r *Relay) accept() {
	for {
		in, err := r.listener.Accept()
		if err != nil {
			return
		}
		go r.pass(in)
	}
}

// pass ends both connections when one side ends: HTTP asks for no half of one.
func (r *Relay) pass(in net.Conn) {
	defer in.Close()
	out, err := r.dial(in.LocalAddr().String())
	if err != nil {
		return
	}
	defer out.Close()
	one := make(chan struct{}, 2)
	go func() { _, _ = io.Copy(out, in); one <- struct{}{} }()
	go func() { _, _ = io.Copy(in, out); one <- struct{}{} }()
	<-one
}

// Close takes no further connections.
func (r *Relay) Close() error { return r.listener.Close() }

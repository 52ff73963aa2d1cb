package beside

import (
	"context"
	"io"
	"net"
)

// Relay passes connections on to another address.
type Relay struct {
	listener net.Listener
	to       string
}

// StartRelay passes on what the listener accepts.
func StartRelay(listener net.Listener, to string) *Relay {
	r := &Relay{listener: listener, to: to}
	go r.accept()
	return r
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
	out, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", r.to)
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

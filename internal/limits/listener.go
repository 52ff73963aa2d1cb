package limits

import (
	"net"
	"sync"
)

type listener struct {
	net.Listener
	connections *Budget
}

// Listen closes connections beyond the budget at once: a connection that waits holds memory too.
func Listen(l net.Listener, connections *Budget) net.Listener { return &listener{l, connections} }

func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err // unwrapped: net/http looks at its type
		}
		source := Source(conn.RemoteAddr().String())
		if l.connections.Take(source, 1) {
			return &counted{Conn: conn, leave: sync.OnceFunc(func() { l.connections.Give(source, 1) })}, nil
		}
		_ = conn.Close()
	}
}

type counted struct {
	net.Conn
	leave func()
}

func (c *counted) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

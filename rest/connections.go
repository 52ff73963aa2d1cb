package rest

import (
	"net"
	"sync"
)

// connections that may be open at a time: each holds memory that admission, in
// the same process, may need.
const connections = 128

// limitedListener closes at once what comes beyond the limit: a connection that
// waited would hold memory too.
type limitedListener struct {
	net.Listener
	places chan struct{}
}

func limited(l net.Listener, n int) net.Listener { return &limitedListener{l, make(chan struct{}, n)} }

func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err // as it is: net/http looks at it
		}
		select {
		case l.places <- struct{}{}:
			return &limitedConn{Conn: conn, leave: sync.OnceFunc(func() { <-l.places })}, nil
		default:
			_ = conn.Close()
		}
	}
}

type limitedConn struct {
	net.Conn
	leave func()
}

func (c *limitedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

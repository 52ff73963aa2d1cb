package limits

import (
	"io"
	"net"
	"testing"
	"time"
)

// serve accepts until the test ends.
func serve(t *testing.T, total, perSource int64) (address string, accepted <-chan net.Conn) {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	connections := make(chan net.Conn)
	go func() {
		listener := Listen(inner, NewBudget(total, perSource))
		for {
			conn, err := listener.Accept()
			if err != nil {
				close(connections)
				return
			}
			connections <- conn
		}
	}()
	t.Cleanup(func() { _ = inner.Close() })
	return inner.Addr().String(), connections
}

func dial(t *testing.T, from, to string) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.Dial("tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func assertClosed(t *testing.T, conn net.Conn) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the connection was not closed: %v", err)
	}
}

func TestConnectionsBeyondTheSumAreClosed(t *testing.T) {
	address, accepted := serve(t, 1, 1)
	dial(t, "127.0.0.1", address)
	first := <-accepted
	assertClosed(t, dial(t, "127.0.0.2", address))
	_ = first.Close()
	_ = first.Close() // gives back one place only
	dial(t, "127.0.0.3", address)
	second := <-accepted
	defer second.Close()
	assertClosed(t, dial(t, "127.0.0.1", address))
}

func TestOneSourceDoesNotUseUpTheConnections(t *testing.T) {
	address, accepted := serve(t, 2, 1)
	dial(t, "127.0.0.1", address)
	defer (<-accepted).Close()
	assertClosed(t, dial(t, "127.0.0.1", address))
	dial(t, "127.0.0.2", address)
	defer (<-accepted).Close()
}

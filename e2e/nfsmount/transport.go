package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// transport is one TCP connection to a server that is made again as the kernel's
// client does: from the same source port where that is free, with all requests
// without an answer sent once more.
type transport struct {
	address string
	// timeout without an answer after which the connection is made again.
	timeout time.Duration
	soft    bool
	// reserved ports are the source of a client that runs as root.
	reserved bool

	mu      sync.Mutex
	conn    net.Conn
	dialing bool
	port    int // source port of the last connection
	next    uint32
	pending map[uint32]*request
}

type request struct {
	message []byte
	answer  chan []byte
}

func newTransport(address string, timeout time.Duration, soft, reserved bool) *transport {
	return &transport{address: address, timeout: timeout, soft: soft, reserved: reserved, next: rand.Uint32(), pending: map[uint32]*request{}}
}

var errTimeout = errors.New("the server does not answer")

// call sends a message, which begins with a place for its xid, and waits for its answer:
// for ever, unless the mount is soft or ctx ends.
func (t *transport) call(ctx context.Context, message []byte) ([]byte, error) {
	r := &request{message: message, answer: make(chan []byte, 1)}
	t.mu.Lock()
	t.next++
	xid := t.next
	binary.BigEndian.PutUint32(message, xid)
	t.pending[xid] = r
	conn := t.conn
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		delete(t.pending, xid)
		t.mu.Unlock()
	}()
	if conn == nil {
		t.reconnect(nil)
	} else if t.send(conn, message) != nil {
		t.reconnect(conn)
	}
	for {
		timer := time.NewTimer(t.timeout)
		select {
		case answer := <-r.answer:
			timer.Stop()
			return answer, nil
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-timer.C:
		}
		if t.soft {
			return nil, errTimeout
		}
		t.mu.Lock()
		conn := t.conn
		t.mu.Unlock()
		log.Println("server", t.address, "not responding, still trying")
		t.reconnect(conn)
	}
}

// send gives up after the timeout: a server that hangs reads no more.
func (t *transport) send(conn net.Conn, message []byte) error {
	_ = conn.SetWriteDeadline(time.Now().Add(t.timeout))
	frame := binary.BigEndian.AppendUint32(nil, 1<<31|uint32(len(message)))
	_, err := conn.Write(append(frame, message...))
	return err
}

// reconnect replaces a connection. Several calls for the same one do it once.
func (t *transport) reconnect(old net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conn != old || t.dialing {
		return
	}
	if old != nil {
		_ = old.Close()
	}
	t.conn, t.dialing = nil, true
	go t.connect()
}

// connect tries until it is connected or no call waits any more.
func (t *transport) connect() {
	said := ""
	for {
		conn, err := t.dial()
		t.mu.Lock()
		if err == nil || len(t.pending) == 0 {
			t.conn, t.dialing = conn, false
			messages := make([][]byte, 0, len(t.pending))
			for _, r := range t.pending {
				messages = append(messages, r.message)
			}
			t.mu.Unlock()
			if err == nil {
				log.Println("connected to", t.address, "from", conn.LocalAddr())
				t.resume(conn, messages)
			}
			return
		}
		t.mu.Unlock()
		if err.Error() != said {
			said = err.Error()
			log.Println("connecting to", t.address, ":", err)
		}
		time.Sleep(redialPause)
	}
}

// resume sends what the connection before has not answered.
func (t *transport) resume(conn net.Conn, messages [][]byte) {
	go t.receive(conn)
	for _, message := range messages {
		if t.send(conn, message) != nil {
			return // receive notices
		}
	}
}

const redialPause = 200 * time.Millisecond

const dialTimeout = 2 * time.Second

// Source ports of a client that runs as root.
const firstReserved, lastReserved = 665, 1023

func (t *transport) dial() (net.Conn, error) {
	var last error
	for range 20 {
		port := t.port
		if port == 0 && t.reserved {
			port = firstReserved + rand.IntN(lastReserved-firstReserved+1)
		}
		dialer := net.Dialer{Timeout: dialTimeout, LocalAddr: &net.TCPAddr{Port: port}, Control: configure, KeepAliveConfig: keepAlive}
		conn, err := dialer.Dial("tcp", t.address)
		if err == nil {
			t.port = conn.LocalAddr().(*net.TCPAddr).Port
			return conn, nil
		}
		last = err
		if !errors.Is(err, syscall.EADDRNOTAVAIL) && !errors.Is(err, syscall.EADDRINUSE) {
			return nil, err
		}
		t.port = 0 // that port still belongs to the connection before
	}
	return nil, last
}

// A server that is gone is noticed after seconds, also one that has another host's address now.
const goneAfter = 10 * time.Second

var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 2 * time.Second, Interval: 2 * time.Second, Count: 4}

func configure(_, _ string, raw syscall.RawConn) error {
	var err error
	if outer := raw.Control(func(fd uintptr) {
		err = errors.Join(unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
			unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(goneAfter.Milliseconds())))
	}); outer != nil {
		return outer
	}
	return err
}

const maxMessage = 4 << 20

func (t *transport) receive(conn net.Conn) {
	for {
		message, err := receiveOne(conn)
		if err != nil {
			t.mu.Lock()
			current := t.conn == conn
			if current && len(t.pending) == 0 {
				_ = conn.Close()
				t.conn = nil // the next call connects
				current = false
			}
			t.mu.Unlock()
			if current {
				t.reconnect(conn)
			}
			return
		}
		t.mu.Lock()
		if r := t.pending[binary.BigEndian.Uint32(message)]; r != nil {
			select {
			case r.answer <- message[4:]:
			default: // answered before, when it was sent the first time
			}
		}
		t.mu.Unlock()
	}
}

func receiveOne(conn net.Conn) ([]byte, error) {
	var message []byte
	for {
		var mark [4]byte
		if _, err := io.ReadFull(conn, mark[:]); err != nil {
			return nil, err
		}
		size := binary.BigEndian.Uint32(mark[:])
		length := int(size &^ (1 << 31))
		if len(message)+length > maxMessage {
			return nil, fmt.Errorf("the server sends a message of more than %d bytes", maxMessage)
		}
		start := len(message)
		message = append(message, make([]byte, length)...)
		if _, err := io.ReadFull(conn, message[start:]); err != nil {
			return nil, err
		}
		if size>>31 == 1 {
			if len(message) < 4 {
				return nil, errShort
			}
			return message, nil
		}
	}
}

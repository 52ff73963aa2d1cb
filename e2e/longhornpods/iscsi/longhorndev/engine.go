package longhorndev

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Messages of longhorn-engine's pkg/dataconn. It cannot be imported: it imports a package that imports this package.
const (
	magic = 0x1b01

	read     = 0
	write    = 1
	response = 2
	end      = 4
)

type header struct {
	Magic    uint16
	Sequence uint32
	Type     uint32
	Offset   int64
	Size     uint32
	Length   uint32
}

type answer struct {
	kind uint32
	data []byte
}

// engine is a client of the socket of a volume's engine.
type engine struct {
	conn net.Conn

	writing sync.Mutex
	writer  *bufio.Writer

	mu       sync.Mutex
	sequence uint32
	waiting  map[uint32]chan answer
	err      error
}

// dial waits for the socket: the engine listens on it while the device starts.
func dial(path string, timeout time.Duration) (*engine, error) {
	deadline := time.Now().Add(timeout)
	for {
		conn, err := net.Dial("unix", path)
		if err == nil {
			e := &engine{conn: conn, writer: bufio.NewWriterSize(conn, 1<<16), waiting: map[uint32]chan answer{}}
			go e.receive()
			return e, nil
		}
		if time.Now().After(deadline) {
			return nil, err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (e *engine) close() { _ = e.conn.Close() }

func (e *engine) readAt(p []byte, offset int64) error {
	a, err := e.call(header{Type: read, Offset: offset, Size: uint32(len(p))}, nil)
	if err != nil {
		return err
	}
	clear(p[copy(p, a.data):])
	return nil
}

func (e *engine) writeAt(p []byte, offset int64) error {
	_, err := e.call(header{Type: write, Offset: offset, Size: uint32(len(p))}, p)
	return err
}

func (e *engine) call(h header, data []byte) (answer, error) {
	reply := make(chan answer, 1)
	e.mu.Lock()
	if e.err != nil {
		defer e.mu.Unlock()
		return answer{}, e.err
	}
	e.sequence++
	h.Magic, h.Sequence, h.Length = magic, e.sequence, uint32(len(data))
	e.waiting[h.Sequence] = reply
	e.mu.Unlock()

	if err := e.send(h, data); err != nil {
		e.fail(err)
	}
	a, ok := <-reply
	switch {
	case !ok:
		return answer{}, e.err // set before the channel is closed
	case a.kind != response && a.kind != end:
		return answer{}, fmt.Errorf("the engine answered: %s", a.data)
	}
	return a, nil
}

func (e *engine) send(h header, data []byte) error {
	e.writing.Lock()
	defer e.writing.Unlock()
	if err := binary.Write(e.writer, binary.LittleEndian, h); err != nil {
		return err
	}
	if _, err := e.writer.Write(data); err != nil {
		return err
	}
	return e.writer.Flush()
}

func (e *engine) receive() {
	reader := bufio.NewReaderSize(e.conn, 1<<16)
	for {
		var h header
		if err := binary.Read(reader, binary.LittleEndian, &h); err != nil {
			e.fail(err)
			return
		}
		data := make([]byte, h.Length)
		if _, err := io.ReadFull(reader, data); err != nil {
			e.fail(err)
			return
		}
		e.mu.Lock()
		reply := e.waiting[h.Sequence]
		delete(e.waiting, h.Sequence)
		e.mu.Unlock()
		if reply != nil {
			reply <- answer{h.Type, data}
		}
	}
}

// fail ends all calls: a device whose engine is gone has I/O errors.
func (e *engine) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.err = errors.Join(errors.New("the engine's socket is closed"), err)
	}
	for sequence, reply := range e.waiting {
		close(reply)
		delete(e.waiting, sequence)
	}
}

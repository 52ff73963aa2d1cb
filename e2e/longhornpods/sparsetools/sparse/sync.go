package sparse

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

const block = 1 << 20

// record precedes its data. The first one has the file's size as its offset, and no data, as the last one.
type record struct {
	Offset int64
	Length uint32
}

// SyncFile sends a file to a receiver.
func SyncFile(path, remote string, timeout int, _, _ bool) error {
	f, err := NewDirectFileIoProcessor(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return err
	}
	return SyncContent(path, f, size, remote, timeout, false, false)
}

// SyncContent sends what is read from source to a receiver. Each block has timeout seconds.
func SyncContent(name string, source ReaderWriterAt, size int64, remote string, timeout int, _, _ bool) error {
	if err := send(source, size, remote, time.Duration(timeout)*time.Second); err != nil {
		return fmt.Errorf("sending %s to %s: %w", name, remote, err)
	}
	return nil
}

func send(source ReaderWriterAt, size int64, remote string, timeout time.Duration) error {
	conn, err := dial(remote, timeout)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	intervals, failed, err := source.GetDataLayout(ctx)
	if err != nil {
		return err
	}
	put := func(offset int64, data []byte) error {
		if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
			return err
		}
		if err := binary.Write(conn, binary.LittleEndian, record{offset, uint32(len(data))}); err != nil {
			return err
		}
		_, err := conn.Write(data)
		return err
	}
	if err := put(size, nil); err != nil {
		return err
	}
	buffer := make([]byte, block)
	for i := range intervals {
		for at := i.Begin; i.Kind == SparseData && at < i.End; at += block {
			data := buffer[:min(block, i.End-at)]
			if n, err := source.ReadAt(data, at); err != nil && !(err == io.EOF && n == len(data)) {
				return err
			}
			if err := put(at, data); err != nil {
				return err
			}
		}
	}
	if err := <-failed; err != nil {
		return err
	}
	if err := put(size, nil); err != nil {
		return err
	}
	_, err = io.ReadFull(conn, make([]byte, 1))
	return err
}

// dial waits for the receiver, which is started at the same time.
func dial(remote string, timeout time.Duration) (net.Conn, error) {
	deadline := time.Now().Add(timeout)
	for {
		conn, err := net.DialTimeout("tcp", remote, timeout)
		if err == nil || time.Now().After(deadline) {
			return conn, err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Receive writes what is sent over conn to the file at path, which it empties first.
func Receive(conn net.Conn, path string, timeout time.Duration, received func(bytes int64)) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	buffer := make([]byte, block)
	for first := true; ; first = false {
		if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
			return err
		}
		var r record
		if err := binary.Read(conn, binary.LittleEndian, &r); err != nil {
			return err
		}
		switch {
		case first:
			if err := f.Truncate(r.Offset); err != nil {
				return err
			}
			continue
		case r.Length == 0:
			_, err := conn.Write([]byte{0})
			return err
		case r.Length > block:
			return errors.New("a record is longer than a block")
		}
		data := buffer[:r.Length]
		if _, err := io.ReadFull(conn, data); err != nil {
			return err
		}
		if _, err := f.WriteAt(data, r.Offset); err != nil {
			return err
		}
		received(int64(r.Length))
	}
}

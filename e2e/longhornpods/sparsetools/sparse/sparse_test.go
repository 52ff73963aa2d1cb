package sparse

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const hole, size = 1 << 20, 4 << 20

// layer makes a file with data at one offset.
func layer(t *testing.T, name string, fill byte, offset int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	f, err := os.Create(path)
	do(t, err)
	defer f.Close()
	do(t, f.Truncate(size))
	_, err = f.WriteAt(bytes.Repeat([]byte{fill}, hole), offset)
	do(t, err)
	return path
}

func do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	do(t, err)
	return data
}

// data counts the bytes of a file that are not holes.
func data(t *testing.T, path string) (n int64) {
	t.Helper()
	f, err := os.Open(path)
	do(t, err)
	defer f.Close()
	do(t, eachData(f, func(i Interval) error { n += i.End - i.Begin; return nil }))
	return n
}

type progress struct{ done bool }

func (p *progress) UpdateFileHandlingProgress(_ int, done bool, _ error) { p.done = done }

func TestSyncReplacesTheFileAndKeepsHoles(t *testing.T) {
	source, target := layer(t, "source", 'a', 2*hole), layer(t, "target", 'b', 0)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	do(t, err)
	defer listener.Close()
	received := make(chan error, 1)
	var bytesReceived int64
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			defer conn.Close()
			err = Receive(conn, target, time.Minute, func(n int64) { bytesReceived += n })
		}
		received <- err
	}()
	do(t, SyncFile(source, listener.Addr().String(), 60, true, true))
	do(t, <-received)
	if !bytes.Equal(content(t, source), content(t, target)) {
		t.Error("the files differ")
	}
	if bytesReceived != hole || data(t, target) != hole {
		t.Errorf("%d bytes were sent and %d are stored, not %d", bytesReceived, data(t, target), hole)
	}
}

func TestFoldWritesTheChildIntoItsParent(t *testing.T) {
	child, parent := layer(t, "child", 'c', hole), layer(t, "parent", 'p', 0)
	var p progress
	do(t, FoldFile(child, parent, &p))
	got := content(t, parent)
	if got[0] != 'p' || got[hole] != 'c' || got[2*hole] != 0 || !p.done {
		t.Errorf("the parent has %q, %q and %q, done %t", got[0], got[hole], got[2*hole], p.done)
	}
}

func TestPruneFreesWhatTheChildHides(t *testing.T) {
	child, parent := layer(t, "child", 'c', 0), layer(t, "parent", 'p', 0)
	do(t, PruneFile(parent, child, &progress{}))
	if n := data(t, parent); n != 0 {
		t.Errorf("%d bytes of the parent remain", n)
	}
}

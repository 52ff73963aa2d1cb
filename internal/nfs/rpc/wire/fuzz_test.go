package wire

import (
	"bytes"
	"testing"
)

func FuzzRecord(f *testing.F) {
	f.Add(fragment([]byte("one"), true))
	f.Add(append(fragment([]byte("one"), false), fragment([]byte("two"), true)...))
	f.Add(word(nil, lastFragment|MaxRecord+1))
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		record, err := ReadRecord(bytes.NewReader(stream))
		if err != nil {
			return
		}
		if len(record) > MaxRecord || len(record) > len(stream)-4 {
			t.Fatalf("record of %d bytes from %d", len(record), len(stream))
		}
		again, err := ReadRecord(bytes.NewReader(fragment(record, true)))
		if err != nil || !bytes.Equal(again, record) {
			t.Fatalf("%x became %x, %v", record, again, err)
		}
	})
}

func FuzzReply(f *testing.F) {
	for _, text := range []string{
		"00000007 00000001 0 0 0 0", "00000007 00000001 0 00000006 00000003 0a0b0c00 0 01020304", "00000007 00000001 0 0 0 00000002 00000003 00000004",
		"00000007 00000001 0 0 0 00000002", "00000007 00000001 00000001 0 00000003 00000003", "00000007 00000001 00000001 0", "00000007 00000001 00000001 00000001 00000005",
	} {
		f.Add(fromHex(f, shortZeros(text)), uint32(7))
	}
	f.Fuzz(func(t *testing.T, record []byte, xid uint32) {
		reply, err := ParseReply(record, xid)
		if err != nil {
			return
		}
		if len(record) < 16 || reply.Outcome > AuthError || !bytes.HasPrefix(record, word(nil, xid, 1)) || !bytes.HasSuffix(record, reply.Results) {
			t.Fatalf("%x is taken for %+v", record, reply)
		}
		if reply.Results != nil && reply.Outcome != Success || reply.HasRange && reply.Outcome != ProgramMismatch && reply.Outcome != RPCMismatch {
			t.Fatalf("%x is taken for %+v", record, reply)
		}
	})
}

func FuzzResults(f *testing.F) {
	f.Add(word(nil, 20048))
	f.Add(opaque(nil, "::.8.1"))
	f.Add(word(opaque(word(nil, 0), []byte{1, 2, 3}), 1, 1))
	f.Add(word(opaque(word(opaque(word(nil, 1), "/a"), 1), "*"), 0, 0))
	f.Fuzz(func(t *testing.T, results []byte) {
		if port, err := ParsePort(results); err == nil && !bytes.HasPrefix(results, word(nil, uint32(port))) {
			t.Errorf("port %d of %x", port, results)
		}
		if port, err := ParseAddress(results); err == nil && port != 0 && len(results) < 4+len("..1") {
			t.Errorf("port %d of %x", port, results)
		}
		if status, handle, err := ParseMount(results); err == nil && (status == OK) != (len(handle) > 0) || len(handle) > MaxHandle3 {
			t.Errorf("%s and handle %x of %x", status, handle, results)
		}
		if paths, err := ParseExports(results); err == nil && len(results) < 4+12*len(paths) {
			t.Errorf("%d paths of %d bytes", len(paths), len(results))
		}
	})
}

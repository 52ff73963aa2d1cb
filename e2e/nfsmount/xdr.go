package main

import (
	"encoding/binary"
	"errors"
)

// writer encodes XDR (RFC 4506).
type writer struct{ b []byte }

func (w *writer) u32(v uint32) { w.b = binary.BigEndian.AppendUint32(w.b, v) }
func (w *writer) u64(v uint64) { w.b = binary.BigEndian.AppendUint64(w.b, v) }

func (w *writer) bytes(v []byte) {
	w.u32(uint32(len(v)))
	w.b = append(w.b, v...)
	for len(w.b)%4 != 0 {
		w.b = append(w.b, 0)
	}
}

var errShort = errors.New("the server's answer is cut short")

// reader decodes XDR. After the first failure everything is zero.
type reader struct {
	b   []byte
	err error
}

func (r *reader) take(n int) []byte {
	if r.err != nil || n < 0 || n > len(r.b) {
		r.err = errShort
		return make([]byte, min(max(n, 0), 64))
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) u32() uint32 { return binary.BigEndian.Uint32(r.take(4)) }
func (r *reader) u64() uint64 { return binary.BigEndian.Uint64(r.take(8)) }
func (r *reader) ok() bool    { return r.u32() != 0 }

func (r *reader) bytes() []byte {
	n := int(r.u32())
	v := r.take(n)
	r.take((4 - n%4) % 4)
	return v
}

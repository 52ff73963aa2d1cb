package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// errShort is a reply that ends before what its type has to contain.
var errShort = errors.New("reply is cut short")

// decoder reads XDR (RFC 4506). After the first error all its results are zero. It never copies or allocates.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) word() uint32 {
	if b := d.bytes(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// bytes are the next n bytes, without padding.
func (d *decoder) bytes(n int) []byte {
	if d.err != nil || n > len(d.rest) {
		d.fail(errShort)
		return nil
	}
	b := d.rest[:n:n]
	d.rest = d.rest[n:]
	return b
}

// opaque is data of variable length, at most limit bytes.
func (d *decoder) opaque(name string, limit int) []byte {
	length := d.word()
	if d.err == nil && uint64(length) > uint64(limit) {
		d.fail(fmt.Errorf("%s has %d bytes, more than %d", name, length, limit))
		return nil
	}
	b := d.bytes(int(length))
	d.bytes(padding(len(b)))
	return b
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err, d.rest = err, nil
	}
}

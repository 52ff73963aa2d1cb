package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// errRecord is a record that no server sends as a reply to a probe.
var errRecord = errors.New("record mark is not one of a reply")

// maxFragments ends a reply of empty fragments without end.
const maxFragments = 1024

// IsBadRecord reports whether the bytes were no RPC reply. Other errors of ReadRecord come from the reader.
func IsBadRecord(err error) bool { return errors.Is(err, errRecord) }

// ReadRecord reads one record of one or more fragments (RFC 5531, section 11), at most MaxRecord bytes. It
// allocates for what has arrived, never for what a mark announces. io.EOF: ended before the first byte;
// io.ErrUnexpectedEOF: ended within the record.
func ReadRecord(r io.Reader) ([]byte, error) {
	var record bytes.Buffer
	for i := range maxFragments {
		var mark [4]byte
		if _, err := io.ReadFull(r, mark[:]); errors.Is(err, io.EOF) && i > 0 {
			return nil, io.ErrUnexpectedEOF
		} else if err != nil {
			return nil, err
		}
		header := binary.BigEndian.Uint32(mark[:])
		length := int(header &^ lastFragment)
		if length > MaxRecord-record.Len() {
			return nil, fmt.Errorf("%w: %d bytes and more announced, at most %d expected (first bytes %q)", errRecord, record.Len()+length, MaxRecord, mark)
		}
		if n, err := record.ReadFrom(io.LimitReader(r, int64(length))); err != nil {
			return nil, err
		} else if n < int64(length) {
			return nil, io.ErrUnexpectedEOF
		}
		if header&lastFragment != 0 {
			return record.Bytes(), nil
		}
	}
	return nil, fmt.Errorf("%w: more than %d fragments", errRecord, maxFragments)
}

package wire

import (
	"errors"
	"fmt"
)

// Operations of NFS version 4.0 (RFC 7530, section 16).
const (
	opGetHandle     = 10
	opLookup        = 15
	opPutHandle     = 22
	opPutRootHandle = 24
	opIllegal       = 10044
)

// Lookup is one COMPOUND that walks to a directory: from the root or from a handle, name by name.
type Lookup struct {
	From  []byte // nil: the root of the server's exports
	Names []string
}

// Next splits off the names that do not fit into this COMPOUND.
func (l Lookup) Next() (first Lookup, later []string) {
	n := min(len(l.Names), maxNames)
	return Lookup{From: l.From, Names: l.Names[:n]}, l.Names[n:]
}

// Arguments are those of COMPOUND, minor version 0: PUTROOTFH or PUTFH, LOOKUP of each name, GETFH.
func (l Lookup) Arguments() []byte {
	operations := l.operations()
	b := word(opaque(nil, ""), 0, uint32(len(operations))) // tag, minor version
	for i, operation := range operations {
		b = word(b, operation)
		switch operation {
		case opPutHandle:
			b = opaque(b, l.From)
		case opLookup:
			b = opaque(b, l.Names[i-1])
		}
	}
	return b
}

func (l Lookup) operations() []uint32 {
	operations := make([]uint32, 0, 2+len(l.Names))
	if l.From == nil {
		operations = append(operations, opPutRootHandle)
	} else {
		operations = append(operations, opPutHandle)
	}
	for range l.Names {
		operations = append(operations, opLookup)
	}
	return append(operations, opGetHandle)
}

// Found is the result of a Lookup.
type Found struct {
	Status Status
	// Done counts the names that were found.
	Done   int
	Handle []byte // with OK
}

var errResults = errors.New("results of COMPOUND do not match its operations")

// Parse reads the result of the COMPOUND. A server stops at the first operation that fails and repeats its
// status for the whole (RFC 7530, section 16.2.3); with another minor version it answers no operation.
func (l Lookup) Parse(results []byte) (Found, error) {
	d := decoder{rest: results}
	whole := Status(d.word())
	d.opaque("the tag", MaxRecord)
	count := d.word()
	operations := l.operations()
	if d.err == nil && uint64(count) > uint64(len(operations)) {
		d.fail(fmt.Errorf("%w: %d results to %d operations", errResults, count, len(operations)))
	}
	found := Found{}
	for i := 0; i < int(count) && d.err == nil; i++ {
		operation, status := d.word(), Status(d.word())
		switch {
		case d.err != nil:
		case operation != operations[i] && operation != opIllegal:
			d.fail(fmt.Errorf("%w: operation %d answered as %d", errResults, operations[i], operation))
		case status != OK && (i != int(count)-1 || status != whole):
			d.fail(fmt.Errorf("%w: %s of one operation, %s of all", errResults, status, whole))
		case status == OK && operation == opLookup:
			found.Done++
		case status == OK && operation == opGetHandle:
			found.Handle = d.opaque("the file handle", MaxHandle4)
		}
	}
	if d.err == nil && whole == OK && (int(count) != len(operations) || len(found.Handle) == 0) {
		d.fail(fmt.Errorf("%w: OK without a file handle", errResults))
	}
	if d.err != nil {
		return Found{}, d.err
	}
	if found.Status = whole; whole != OK {
		found.Handle = nil
	}
	return found, nil
}

package wire

import (
	"errors"
	"fmt"
)

// Operations of NFS version 4.0 (RFC 7530, section 16).
const (
	opLookup        = 15
	opPutRootHandle = 24
	opIllegal       = 10044
)

// LookupArguments are those of COMPOUND, minor version 0: PUTROOTFH, and LOOKUP of each name.
func LookupArguments(names []string) []byte {
	b := word(opaque(nil, ""), 0, uint32(1+len(names)), opPutRootHandle) // tag, minor version
	for _, name := range names {
		b = opaque(word(b, opLookup), name)
	}
	return b
}

var errResults = errors.New("results of COMPOUND do not match its operations")

// ParseLookup reads the result of the COMPOUND of a number of names. A server stops at the first operation that fails and
// repeats its status for the whole (RFC 7530, section 16.2.3); with another minor version it answers no operation.
func ParseLookup(results []byte, names int) (Status, error) {
	d := decoder{rest: results}
	whole := Status(d.word())
	d.opaque("the tag", MaxRecord)
	count := int(d.word())
	if d.err == nil && count > 1+names {
		d.fail(fmt.Errorf("%w: %d results to %d operations", errResults, count, 1+names))
	}
	want := uint32(opPutRootHandle)
	for i := 0; i < count && d.err == nil; i++ {
		operation, status := d.word(), Status(d.word())
		switch {
		case d.err != nil:
		case operation != want && operation != opIllegal:
			d.fail(fmt.Errorf("%w: operation %d answered as %d", errResults, want, operation))
		case status != OK && (i != count-1 || status != whole):
			d.fail(fmt.Errorf("%w: %s of one operation, %s of all", errResults, status, whole))
		}
		want = opLookup
	}
	if d.err == nil && whole == OK && count != 1+names {
		d.fail(fmt.Errorf("%w: OK without an answer to each", errResults))
	}
	return whole, d.err
}

package wire

// Operations of NFS version 4.0 (RFC 7530, section 16).
const (
	opLookup        = 15
	opPutRootHandle = 24
)

// LookupArguments are those of COMPOUND, minor version 0: PUTROOTFH, and LOOKUP of each name.
func LookupArguments(names []string) []byte {
	b := word(opaque(nil, ""), 0, uint32(1+len(names)), opPutRootHandle) // tag, minor version
	for _, name := range names {
		b = opaque(word(b, opLookup), name)
	}
	return b
}

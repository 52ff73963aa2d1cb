package wire

import "encoding/binary"

func word(b []byte, values ...uint32) []byte {
	for _, v := range values {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

// opaque appends a length, the bytes, and zeros up to a multiple of 4 (RFC 4506, section 4.10).
func opaque[B []byte | string](b []byte, data B) []byte {
	b = append(word(b, uint32(len(data))), data...)
	return append(b, make([]byte, padding(len(data)))...)
}

func padding(length int) int { return -length & 3 }

// Credential is an encoded opaque_auth (RFC 5531, section 8.2).
type Credential []byte

// NoCredential is AUTH_NONE.
func NoCredential() Credential { return word(nil, 0, 0) }

// System is AUTH_SYS (RFC 5531, appendix A) of root without further groups, as a mounting kernel sends it.
func System(machine string) Credential {
	machine = machine[:min(len(machine), 255)]
	body := word(opaque(word(nil, 0), machine), 0, 0, 0) // stamp, name, uid, gid, no gids
	return opaque(word(nil, 1), body)
}

// Call is one RPC call. Arguments are encoded already.
type Call struct {
	XID                         uint32
	Program, Version, Procedure uint32
	Credential                  Credential // nil: AUTH_NONE
	Arguments                   []byte
}

// Record is the call as one fragment with its record mark.
func (c Call) Record() []byte {
	credential := c.Credential
	if credential == nil {
		credential = NoCredential()
	}
	const header = 7 * 4 // mark, xid, call, RPC version, program, version, procedure
	size := header + len(credential) + 8 + len(c.Arguments)
	b := make([]byte, 0, size)
	b = word(b, lastFragment|uint32(size-4), c.XID, 0, 2, c.Program, c.Version, c.Procedure)
	b = append(b, credential...)
	b = word(b, 0, 0) // verifier: AUTH_NONE
	return append(b, c.Arguments...)
}

// GetPortArguments ask the port mapper (version 2) for a program over TCP.
func GetPortArguments(program, version uint32) []byte {
	const tcp = 6
	return word(nil, program, version, tcp, 0)
}

// GetAddressArguments ask rpcbind (version 4) for a program. Transport is "tcp" or "tcp6".
func GetAddressArguments(program, version uint32, transport string) []byte {
	return opaque(opaque(opaque(word(nil, program, version), transport), ""), "")
}

// PathArguments are those of MNT and UMNT.
func PathArguments(path string) []byte { return opaque(nil, path) }

// HandleArguments are those of GETATTR.
func HandleArguments(handle []byte) []byte { return opaque(nil, handle) }

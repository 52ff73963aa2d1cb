// Package wire has the bytes of the calls and replies that a probe of an NFS server needs: ONC RPC (RFC 5531),
// the port mapper (RFC 1833), MOUNT and NFS version 3 (RFC 1813), NFS version 4.0 (RFC 7530). Bytes in, values out.
package wire

// Programs, versions and procedures that probes call.
const (
	ProgramPortMapper = 100000 // RFC 1833
	ProgramNFS        = 100003 // RFC 1813, RFC 7530
	ProgramMount      = 100005 // RFC 1813, appendix I

	VersionPortMapper = 2 // IPv4 only
	VersionRPCBind    = 4 // IPv4 and IPv6
	VersionMount      = 3

	ProcedureNull       = 0 // of every program
	ProcedureGetPort    = 3 // version 2: by protocol number
	ProcedureGetAddress = 3 // version 4: by the name of the transport
	ProcedureMount      = 1
	ProcedureUnmount    = 3
	ProcedureExports    = 5
	ProcedureGetAttr    = 1
	ProcedureCompound   = 1
)

// Limits of RFC 1813 and RFC 7530, in bytes.
const (
	MaxHandle3 = 64

	maxPath       = 1024     // MNTPATHLEN
	maxGroup      = 255      // MNTNAMLEN
	maxCredential = 400      // RFC 5531, opaque_auth
	MaxRecord     = 64 << 10 // more than any reply to a probe needs
	lastFragment  = 1 << 31  // RFC 5531, section 11
)

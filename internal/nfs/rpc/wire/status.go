package wire

import "fmt"

// Status is mountstat3, nfsstat3 (RFC 1813) or nfsstat4 (RFC 7530, RFC 8881). One number means the same in all.
type Status uint32

// The values that a probe may get.
const (
	OK               Status = 0
	PermissionDenied Status = 1
	NoEntry          Status = 2
	IOError          Status = 5
	NoDevice         Status = 6
	AccessDenied     Status = 13
	NotDirectory     Status = 20
	Invalid          Status = 22
	NameTooLong      Status = 63
	Stale            Status = 70
	BadHandle        Status = 10001
	NotSupported     Status = 10004
	ServerFault      Status = 10006
	Delay            Status = 10008 // NFS3ERR_JUKEBOX
	Grace            Status = 10013
	HandleExpired    Status = 10014
	WrongSecurity    Status = 10016
	Resource         Status = 10018
	Moved            Status = 10019
	NoHandle         Status = 10020
	MinorVersion     Status = 10021
	Symlink          Status = 10029
	BadXDR           Status = 10036
	BadCharacter     Status = 10040
	BadName          Status = 10041
	IllegalOperation Status = 10044
	NotInSession     Status = 10071
)

var statuses = map[Status]string{
	OK: "OK", PermissionDenied: "PERM", NoEntry: "NOENT", IOError: "IO", NoDevice: "NXIO", AccessDenied: "ACCES", NotDirectory: "NOTDIR",
	Invalid: "INVAL", NameTooLong: "NAMETOOLONG", Stale: "STALE", BadHandle: "BADHANDLE", NotSupported: "NOTSUPP",
	ServerFault: "SERVERFAULT", Delay: "DELAY", Grace: "GRACE", HandleExpired: "FHEXPIRED", WrongSecurity: "WRONGSEC",
	Resource: "RESOURCE", Moved: "MOVED", NoHandle: "NOFILEHANDLE", MinorVersion: "MINOR_VERS_MISMATCH", Symlink: "SYMLINK",
	BadXDR: "BADXDR", BadCharacter: "BADCHAR", BadName: "BADNAME", IllegalOperation: "OP_ILLEGAL", NotInSession: "OP_NOT_IN_SESSION",
}

// String is the RFC's name without its prefix, with the number: "NOENT (2)".
func (s Status) String() string {
	if name := statuses[s]; name != "" {
		return fmt.Sprintf("%s (%d)", name, uint32(s))
	}
	return fmt.Sprintf("error %d", uint32(s))
}
